// The guard as the runner sees it: every change is journalled first, and a watchdog undoes it if the runner cannot.

import { rmSync } from 'node:fs';
import { GpuError } from '../../core/index.ts';
import { type GpuAddress, type GpuDevice, NVML_LIBRARY_VARIABLE } from '../device.ts';
import { openGpu } from '../open.ts';
import {
  type Journal,
  journalPath,
  type LeverChange,
  logPathOf,
  makeJournalFolder,
  newJournal,
  type RestoreReport,
  readJournal,
  removeJournal,
  writeJournal,
} from './journal.ts';
import { Lease } from './lease.ts';
import { bootId, processFacts } from './proc.ts';
import { restoreAll, restoreOnlyLevers } from './restore.ts';

const LIMIT_TOLERANCE_W = 0.5;

export interface GuardOptions {
  readonly runId: string;
  /** Folder of the journals, one for the machine and outside every run folder. Made if need be. */
  readonly journalDir: string;
  /** Null: no GPU, only the engine's processes are guarded. */
  readonly address: GpuAddress | null;
  /** argv that starts `tokbench watchdog`; `--journal PATH` is added. */
  readonly spawnCommand: readonly string[];
}

export interface Guard {
  /** Before the spawn: a process tagged with the run's id may exist from now on. */
  noteEngineIntent(): Promise<void>;
  /** After the spawn: the engine's process group and its leader's start time. */
  noteEngine(engine: { readonly pgid: number; readonly startTime: string | null }): Promise<void>;
  /** The engine was stopped, and nothing of it is left. */
  clearEngine(): Promise<void>;
  /** Locks the SM clock; returns the supported clock that it snapped to, MHz. */
  lock(mhz: number): Promise<number>;
  /** Sets the power limit, W, and reads it back. */
  cap(watts: number): Promise<void>;
  /** Puts both levers back; the engine is left alone. Also works after the watchdog was lost. */
  restore(): Promise<RestoreReport>;
  /** Kills what the engine left, puts the levers back, and ends the watchdog. Idempotent. */
  close(): Promise<RestoreReport>;
  /** Resolves with a sentence if the watchdog ends by itself. Never rejects. */
  readonly lost: Promise<string>;
}

class RunGuard implements Guard {
  readonly lost: Promise<string>;
  readonly #path: string;
  readonly #lease: Lease;
  readonly #device: GpuDevice | null;
  #journal: Journal;
  #closing: Promise<RestoreReport> | null = null;

  constructor(path: string, journal: Journal, lease: Lease, device: GpuDevice | null) {
    this.#path = path;
    this.#journal = journal;
    this.#lease = lease;
    this.#device = device;
    this.lost = lease.lost.then((reason) => `the watchdog is gone: ${reason}`);
  }

  noteEngineIntent(): Promise<void> {
    return this.#promise({ engine: { state: 'intent' } });
  }

  noteEngine(engine: { readonly pgid: number; readonly startTime: string | null }): Promise<void> {
    return this.#promise({ engine: { state: 'running', pgid: engine.pgid, startTime: engine.startTime } });
  }

  async clearEngine(): Promise<void> {
    this.#write({ engine: null });
  }

  lock(mhz: number): Promise<number> {
    return this.#allOrNothing(() => this.#lock(mhz));
  }

  cap(watts: number): Promise<void> {
    return this.#allOrNothing(() => this.#cap(watts));
  }

  async #lock(mhz: number): Promise<number> {
    const device = this.#controllable();
    await this.#intend('smClockMhz', mhz);
    const target = await device.lockSmClock(mhz);
    const { smClockLock } = await device.controls();
    if (smClockLock === 'unlocked' || (smClockLock !== 'unreadable' && smClockLock.maxMhz !== target)) {
      throw notTaken(`the clock lock at ${target} MHz reads back as ${JSON.stringify(smClockLock)}`);
    }
    this.#applied('smClockMhz', target);
    return target;
  }

  async #cap(watts: number): Promise<void> {
    const device = this.#controllable();
    if (this.#journal.board?.powerLimitW == null) throw limitUnknown();
    await this.#intend('powerLimitW', watts);
    await device.setPowerLimitW(watts);
    const { powerLimitW } = await device.controls();
    if (powerLimitW === null || Math.abs(powerLimitW - watts) > LIMIT_TOLERANCE_W) {
      throw notTaken(`the power limit of ${watts} W reads back as ${powerLimitW} W`);
    }
    this.#applied('powerLimitW', watts);
  }

  async restore(): Promise<RestoreReport> {
    const report = await restoreOnlyLevers(this.#journal, { by: 'runner', reason: 'asked for', device: this.#device });
    if (report.ok) this.#write({ changes: [] });
    return report;
  }

  close(): Promise<RestoreReport> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<RestoreReport> {
    const request = { by: 'runner', reason: 'the run ends', device: this.#device } as const;
    const report = await restoreAll(this.#journal, request);
    if (report.ok) removeJournal(this.#path);
    await this.#lease.end(report.ok);
    await this.#device?.close();
    if (report.ok) rmSync(logPathOf(this.#path), { force: true });
    return report.ok ? report : (readJournal(this.#path)?.restored?.report ?? report);
  }

  /** A half-applied state is nobody's arm: when one lever fails, both go back. */
  async #allOrNothing<T>(change: () => Promise<T>): Promise<T> {
    try {
      return await change();
    } catch (error) {
      await this.restore();
      throw error;
    }
  }

  #controllable(): GpuDevice {
    if (!this.#device) {
      throw new GpuError('control_without_gpu', 'A lock or a cap was asked for, but the run has no GPU.', {
        advice: 'Give the config a gpu section, or remove the arm’s levers.',
      });
    }
    return this.#device;
  }

  #intend(lever: LeverChange['lever'], value: number): Promise<void> {
    return this.#promise({ changes: [...this.#journal.changes, { lever, value, state: 'intent' }] });
  }

  #applied(lever: LeverChange['lever'], value: number): void {
    const others = this.#journal.changes.filter((change) => change.lever !== lever);
    this.#write({ changes: [...others, { lever, value, state: 'applied' }] });
  }

  /** On disk and known to a living watchdog before anything happens. */
  async #promise(change: Partial<Journal>): Promise<void> {
    this.#write(change);
    await this.#lease.check();
  }

  #write(change: Partial<Journal>): void {
    this.#journal = { ...this.#journal, ...change };
    writeJournal(this.#path, this.#journal);
  }
}

function notTaken(what: string): GpuError {
  return new GpuError('control_not_taken', `The board accepted a setting that it does not show: ${what}.`, {
    advice: 'Something else may hold the lever (another tool, the host); the setting was undone.',
  });
}

function limitUnknown(): GpuError {
  return new GpuError(
    'limit_unreadable',
    'The power limit of this board cannot be read, so it could not be put back.',
    {
      advice: 'Remove the cap from the arm; a lever that cannot be restored is not touched.',
    },
  );
}

/** The address that leads to the same board and library from another process, whatever its environment. */
function pinned(address: GpuAddress, device: GpuDevice): GpuAddress {
  if (address.kind === 'simulated') return address;
  const libraryPath = address.libraryPath ?? process.env[NVML_LIBRARY_VARIABLE] ?? null;
  return { kind: 'nvml', uuid: device.identity.uuid, libraryPath };
}

/** Opens the device, writes the first journal and starts the watchdog, before anything can be changed. */
export async function startGuard(options: GuardOptions): Promise<Guard> {
  makeJournalFolder(options.journalDir);
  const device = options.address ? await openGpu(options.address) : null;
  const path = journalPath(options.journalDir, options.runId);
  try {
    const journal = await firstJournal(options, device);
    writeJournal(path, journal);
    const lease = await Lease.start(options.spawnCommand, path);
    const watchdog = { pid: lease.pid, startTime: processFacts(lease.pid)?.startTime ?? null };
    writeJournal(path, { ...journal, watchdog });
    return new RunGuard(path, { ...journal, watchdog }, lease, device);
  } catch (error) {
    removeJournal(path);
    rmSync(logPathOf(path), { force: true });
    await device?.close();
    throw error;
  }
}

const knownOrNull = (watts: number): number | null => (Number.isNaN(watts) ? null : watts);

async function firstJournal(options: GuardOptions, device: GpuDevice | null): Promise<Journal> {
  const { runId, address } = options;
  const controls = await device?.controls();
  return newJournal({
    runId,
    bootId: bootId(),
    runner: { pid: process.pid, startTime: processFacts(process.pid)?.startTime ?? null },
    address: address && device ? pinned(address, device) : null,
    board: device && {
      uuid: device.identity.uuid,
      synthetic: device.identity.synthetic,
      powerLimitW: controls?.powerLimitW ?? knownOrNull(device.limits.defaultLimitW),
    },
  });
}
