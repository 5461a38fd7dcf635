// Every error that a user can meet: a stable code, what happened, where, and what to do next.

/** Process exit codes (docs/ARCHITECTURE.md): 1 failed, 2 wrong use or config, 3 refused, 4 environment. */
export type ExitCode = 1 | 2 | 3 | 4;

export interface BenchErrorOptions {
  /** What to do next, one or two sentences. */
  advice: string;
  exitCode?: ExitCode;
  details?: Record<string, unknown>;
  cause?: unknown;
}

const brand = Symbol.for('tokenomics-bench.error');

/** Base of all typed errors. Codes are stable: scripts may rely on them. */
export class BenchError extends Error {
  readonly code: string;
  readonly advice: string;
  readonly exitCode: ExitCode;
  readonly details: Record<string, unknown>;

  constructor(code: string, message: string, options: BenchErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.advice = options.advice;
    this.exitCode = options.exitCode ?? 1;
    this.details = options.details ?? {};
    Object.defineProperty(this, brand, { value: true });
  }
}

/** True for our errors, also across threads and realms (a symbol, not instanceof). */
export function isBenchError(error: unknown): error is BenchError {
  return typeof error === 'object' && error !== null && (error as Record<symbol, unknown>)[brand] === true;
}

/** Wrong configuration or wrong use of a command (exit 2). */
export class ConfigError extends BenchError {
  constructor(code: string, message: string, options: Omit<BenchErrorOptions, 'exitCode'>) {
    super(code, message, { ...options, exitCode: 2 });
  }
}

/** Refused on purpose: budget, safety or validity (exit 3). */
export class RefusedError extends BenchError {
  constructor(code: string, message: string, options: Omit<BenchErrorOptions, 'exitCode'>) {
    super(code, message, { ...options, exitCode: 3 });
  }
}

/** Something that the machine lacks: a program, a library, a free port, disk space (exit 4). */
export class EnvironmentError extends BenchError {
  constructor(code: string, message: string, options: Omit<BenchErrorOptions, 'exitCode'>) {
    super(code, message, { ...options, exitCode: 4 });
  }
}

/** The engine did not start, answered wrongly, or died. */
export class EngineError extends BenchError {}

/** A capture that is incomplete, damaged, or of a version that this program does not read. */
export class CaptureError extends BenchError {}

/** The GPU library or the device refused or lost something. */
export class GpuError extends BenchError {}

/** The text of any thrown thing, for one line of a message. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
