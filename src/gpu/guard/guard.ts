// The guard as the runner sees it: every change is journalled first, and a watchdog undoes it if the runner cannot.

import { GpuError } from '../../core/index.ts';
import { type GpuAddress, type GpuDevice, NVML_LIBRARY_VARIABLE } from '../device.ts';
import { openGpus } from '../open.ts';
import {
  type Journal,
  type JournalBoard,
  journalPath,
  type LeverChange,
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
  /** Every board of the run; empty without a GPU: only the engine's processes are guarded. */
  readonly addresses: readonly GpuAddress[];
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
  /** Locks the SM clock of every board; returns the supported clock that all of them snapped to, MHz. */
  lock(mhz: number): Promise<number>;
  /** Sets the power limit of every board, W, and reads it back. */
  cap(watts: number): Promise<void>;
  /** Puts both levers of every board back; the engine is left alone. Also works after the watchdog was lost. */
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
  readonly #devices: readonly GpuDevice[];
  #journal: Journal;
  #closing: Promise<RestoreReport> | null = null;

  constructor(path: string, journal: Journal, lease: Lease, devices: readonly GpuDevice[]) {
    this.#path = path;
    this.#journal = journal;
    this.#lease = lease;
    this.#devices = devices;
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
    const devices = this.#controllable();
    await this.#intend('smClockMhz', mhz);
    const targets: number[] = [];
    for (const device of devices) {
      const target = await device.lockSmClock(mhz);
      targets.push(target);
      const { smClockLock } = await device.controls();
      if (smClockLock === 'unlocked' || (smClockLock !== 'unreadable' && smClockLock.maxMhz !== target)) {
        throw notTaken(device, `the clock lock at ${target} MHz reads back as ${JSON.stringify(smClockLock)}`);
      }
    }
    const [target] = targets as [number];
    if (targets.some((each) => each !== target)) {
      throw notTaken(devices.at(-1)!, `of ${mhz} MHz the boards made ${targets.join(' and ')} MHz`);
    }
    this.#applied('smClockMhz', target);
    return target;
  }

  async #cap(watts: number): Promise<void> {
    const devices = this.#controllable();
    const unknown = this.#journal.boards.find(({ powerLimitW }) => powerLimitW === null);
    if (unknown) throw limitUnknown(unknown.uuid);
    await this.#intend('powerLimitW', watts);
    for (const device of devices) {
      await device.setPowerLimitW(watts);
      const { powerLimitW } = await device.controls();
      if (powerLimitW === null || Math.abs(powerLimitW - watts) > LIMIT_TOLERANCE_W) {
        throw notTaken(device, `the power limit of ${watts} W reads back as ${powerLimitW} W`);
      }
    }
    this.#applied('powerLimitW', watts);
  }

  async restore(): Promise<RestoreReport> {
    const report = await restoreOnlyLevers(this.#journal, {
      by: 'runner',
      reason: 'asked for',
      devices: this.#devices,
    });
    if (report.ok) this.#write({ changes: [] });
    return report;
  }

  close(): Promise<RestoreReport> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<RestoreReport> {
    const request = { by: 'runner', reason: 'the run ends', devices: this.#devices } as const;
    const report = await restoreAll(this.#journal, request);
    try {
      if (report.ok) removeJournal(this.#path);
    } finally {
      await this.#lease.end(report.ok);
      for (const device of this.#devices) await device.close();
    }
    return report.ok ? report : (readJournal(this.#path)?.restored?.report ?? report);
  }

  /** A half-applied state is nobody's arm: when one lever of one board fails, all of them go back. */
  async #allOrNothing<T>(change: () => Promise<T>): Promise<T> {
    try {
      return await change();
    } catch (error) {
      // A journal that cannot be written any more shows at the next write; what failed first is what is told.
      await this.restore().catch(() => undefined);
      throw error;
    }
  }

  #controllable(): readonly GpuDevice[] {
    if (this.#devices.length === 0) {
      throw new GpuError('control_without_gpu', 'A lock or a cap was asked for, but the run has no GPU.', {
        advice: 'Give the config a gpu section, or remove the arm’s levers.',
      });
    }
    return this.#devices;
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

function notTaken({ identity }: GpuDevice, what: string): GpuError {
  const { name, uuid } = identity;
  return new GpuError('control_not_taken', `${name} ${uuid} accepted a setting that it does not show: ${what}.`, {
    advice: 'Something else may hold the lever (another tool, the host); the setting was undone.',
  });
}

function limitUnknown(uuid: string): GpuError {
  return new GpuError(
    'limit_unreadable',
    `The power limit of board ${uuid} cannot be read, so it could not be put back.`,
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

/** Opens the boards, writes the first journal and starts the watchdog, before anything can be changed. */
export async function startGuard(options: GuardOptions): Promise<Guard> {
  makeJournalFolder(options.journalDir);
  const devices = await openGpus(options.addresses);
  const path = journalPath(options.journalDir, options.runId);
  let lease: Lease | null = null;
  try {
    const journal = await firstJournal(options, devices);
    writeJournal(path, journal);
    lease = await Lease.start(options.spawnCommand, path);
    const watchdog = { pid: lease.pid, startTime: processFacts(lease.pid)?.startTime ?? null };
    writeJournal(path, { ...journal, watchdog });
    return new RunGuard(path, { ...journal, watchdog }, lease, devices);
  } catch (error) {
    await lease?.end(true);
    for (const device of devices) await device.close();
    removeJournal(path);
    throw error;
  }
}

const knownOrNull = (watts: number): number | null => (Number.isNaN(watts) ? null : watts);

async function firstJournal({ runId, addresses }: GuardOptions, devices: readonly GpuDevice[]): Promise<Journal> {
  const boards: JournalBoard[] = [];
  for (const [index, device] of devices.entries()) {
    const { powerLimitW } = await device.controls();
    const { uuid, synthetic } = device.identity;
    boards.push({
      address: pinned(addresses[index]!, device),
      uuid,
      synthetic,
      powerLimitW: powerLimitW ?? knownOrNull(device.limits.defaultLimitW),
    });
  }
  return newJournal({
    runId,
    bootId: bootId(),
    runner: { pid: process.pid, startTime: processFacts(process.pid)?.startTime ?? null },
    boards,
  });
}
