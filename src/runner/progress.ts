// What a run tells its audience. The terminal draws it; tests collect it; the runner only emits.

import type { Reconciliation } from '../analysis/reconcile.ts';
import type { CalibrationFile, CellFile } from '../core/index.ts';
import type { EnergySource } from './energy-source.ts';

export type ProgressEvent =
  | {
      readonly kind: 'run-started';
      readonly runId: string;
      readonly dir: string;
      readonly launches: number;
      readonly etaS: number;
    }
  | { readonly kind: 'counter-found'; readonly source: EnergySource }
  | { readonly kind: 'calibrated'; readonly calibration: CalibrationFile }
  | { readonly kind: 'launch-started'; readonly launch: string; readonly order: number; readonly launches: number }
  | {
      readonly kind: 'phase';
      readonly launch: string;
      readonly phase: string;
      readonly seconds: number;
      readonly note: string;
    }
  | {
      readonly kind: 'load-progress';
      readonly cell: string;
      readonly dispatched: number;
      readonly finished: number;
      readonly inFlight: number;
      readonly scheduled: number;
    }
  | ({ readonly kind: 'reconciled'; readonly cell: string } & Reconciliation)
  | { readonly kind: 'cell-finished'; readonly cell: CellFile }
  | {
      readonly kind: 'energy-truth';
      readonly cell: string;
      readonly exactJ: number;
      readonly energyJ: number;
      readonly boundJ: number;
      readonly withinBound: boolean;
    }
  | {
      readonly kind: 'launch-finished';
      readonly launch: string;
      readonly status: string;
      readonly stopMs: number | null;
    }
  | {
      readonly kind: 'warning';
      readonly where: string;
      readonly code: string;
      readonly message: string;
      readonly advice: string;
    }
  | { readonly kind: 'run-finished'; readonly status: string; readonly dir: string; readonly elapsedS: number };

export interface Reporter {
  emit(event: ProgressEvent): void;
}

export const silentReporter: Reporter = { emit: () => {} };
