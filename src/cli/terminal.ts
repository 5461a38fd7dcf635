// A run's progress on stderr: one line per step; on a terminal also a live line with what is left in time and money.

import { styleText } from 'node:util';
import { bottleneck, ratesText } from '../analysis/bottleneck.ts';
import { energyLine } from '../analysis/energy-words.ts';
import { type CellFile, cellId } from '../core/index.ts';
import type { ProgressEvent, Reporter } from '../runner/progress.ts';
import { calibrationSummary } from './calibration-lines.ts';
import { counterLines } from './counter-lines.ts';

export interface Terminal {
  readonly isTty: boolean;
  write(text: string): void;
}

export const stderrTerminal: Terminal = {
  isTty: process.stderr.isTTY === true && process.env['NO_COLOR'] === undefined,
  write: (text) => void process.stderr.write(text),
};

/** Draws progress; `pricePerHour` null shows no dollars. */
export function terminalReporter(terminal: Terminal, pricePerHour: number | null, now: () => number): Reporter {
  let startedMs = now();
  let etaS = 0;
  let live = false;
  const paint = (style: Parameters<typeof styleText>[0], text: string) =>
    terminal.isTty ? styleText(style, text) : text;
  const line = (text: string) => {
    terminal.write(`${live ? '\r\x1b[2K' : ''}${text}\n`);
    live = false;
  };
  const elapsedS = () => (now() - startedMs) / 1000;
  const clock = () => paint('dim', duration(elapsedS()).padStart(6));
  return {
    emit(event: ProgressEvent) {
      switch (event.kind) {
        case 'run-started':
          startedMs = now();
          etaS = event.etaS;
          line(paint('bold', `run ${event.runId}`));
          line(
            `       ${event.launches} launches, about ${duration(etaS)}${money(etaS, pricePerHour)}, into ${event.dir}`,
          );
          return;
        case 'counter-found':
          for (const text of counterLines(event.source)) line(`               ${text}`);
          return;
        case 'calibrated':
          line(`${clock()} ${calibrationSummary(event.calibration)}`);
          return;
        case 'launch-started':
          line(`${clock()} ${paint('bold', `launch ${event.launch}`)} (${event.order + 1} of ${event.launches})`);
          return;
        case 'phase':
          line(`${clock()}   ${event.phase.padEnd(12)} ${phaseNote(event)}`);
          return;
        case 'load-progress': {
          if (!terminal.isTty) return;
          const left = Math.max(0, etaS - elapsedS());
          terminal.write(
            `\r\x1b[2K${clock()}   ${event.finished}/${event.scheduled} done, ${event.inFlight} in flight; about ${duration(left)}${money(left, pricePerHour)} left in the run`,
          );
          live = true;
          return;
        }
        case 'reconciled': {
          const { outputTokens, agrees } = event;
          if (outputTokens.server === null) line('               the server shows no token counter to compare with');
          else {
            line(
              `               output tokens: ${outputTokens.client} by the client, ${outputTokens.server} by the server: ${agrees ? 'agree' : paint('yellow', 'DIFFER')}`,
            );
          }
          return;
        }
        case 'cell-finished':
          for (const text of cellLines(event.cell)) line(`               ${text}`);
          for (const rule of event.cell.rules.filter((outcome) => outcome.status === 'hit')) {
            line(
              `               ${paint(rule.act === 'W' ? 'yellow' : 'red', `${rule.rule} ${rule.code}`)}: ${rule.text}`,
            );
          }
          return;
        case 'energy-truth':
          line(
            `               energy check: ${event.energyJ.toFixed(1)} J by the counter, ${event.exactJ.toFixed(1)} J exact, bound ±${event.boundJ.toFixed(1)} J: ${event.withinBound ? 'within' : paint('red', 'OUTSIDE')}`,
          );
          return;
        case 'launch-finished':
          line(
            `${clock()}   ${event.status}${event.stopMs === null ? '' : `, server stopped in ${(event.stopMs / 1000).toFixed(1)} s`}`,
          );
          return;
        case 'warning':
          line(`${clock()}   ${paint('yellow', event.code)} at ${event.where}: ${event.message}`);
          line(`               ${event.advice}`);
          return;
        case 'run-finished':
          line(`${clock()} ${paint('bold', event.status)}: ${event.dir}`);
      }
    },
  };
}

/** One cell in a few figures, for a person. Shared by the terminal and the demo's summary. */
export function cellLines(cell: CellFile): string[] {
  const { metrics } = cell;
  const energy = metrics.energy;
  const parts = [
    `${metrics.states.completed} of ${metrics.arrivals} ok`,
    `TTFT p50 ${ms(metrics.ttft.p50Ms)} p99 ${ms(metrics.ttft.p99Ms)}`,
    `TPOT p50 ${ms(metrics.tpot.p50Ms)} p99 ${ms(metrics.tpot.p99Ms)}`,
    `goodput ${metrics.goodputTokPerS === null ? 'not known' : `${metrics.goodputTokPerS.toFixed(1)} tok/s`}`,
  ];
  const second = energy
    ? [
        energyLine(cell),
        metrics.achievedSmClockMhz === null ? null : `SM clock ${metrics.achievedSmClockMhz.toFixed(0)} MHz`,
      ].filter((part) => part !== null)
    : [`energy ${energyLine(cell)}`];
  if (metrics.cost?.dollarsPerMtok != null)
    second.push(`$${metrics.cost.dollarsPerMtok.toFixed(3)} per million good tokens`);
  return [
    `${cellId(cell.key)}: ${cell.valid ? 'valid' : 'NOT VALID'}${cell.status === 'complete' ? '' : ` (${cell.status})`}`,
    parts.join(', '),
    second.join(', '),
    ...heldBack(cell),
  ];
}

function heldBack(cell: CellFile): string[] {
  const cause = bottleneck(cell);
  return cause === null ? [] : [`${ratesText(cell.metrics)}: ${cause.text}`];
}

function ms(value: number | null): string {
  if (value === null) return 'not known';
  return Number.isFinite(value) ? `${value.toFixed(1)} ms` : 'missed';
}

function phaseNote(event: Extract<ProgressEvent, { kind: 'phase' }>): string {
  return event.phase === 'start' ? event.note : `${duration(event.seconds)}, ${event.note}`;
}

function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  return minutes < 60
    ? `${minutes}:${String(whole % 60).padStart(2, '0')}`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function money(seconds: number, pricePerHour: number | null): string {
  return pricePerHour === null ? '' : ` ($${((seconds / 3600) * pricePerHour).toFixed(2)})`;
}
