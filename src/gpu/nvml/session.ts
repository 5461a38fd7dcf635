// One NVML session: calls with their out-parameters turned into values, and codes into typed errors.

import { NVML_INSUFFICIENT_SIZE, NVML_SUCCESS, nvmlError, nvmlPolicy } from './codes.ts';
import type { NvmlArgument, NvmlFunction, NvmlLibrary } from './library.ts';
import { cString } from './structs.ts';

const TEXT_BYTES = 96;

/** Opaque pointer of NVML: made by a handle call, never computed. */
export type NvmlHandle = bigint & { readonly brand: 'nvmlDevice_t' };

/** A value, or NaN with the code for which there is none. */
export interface Reading {
  readonly code: number;
  readonly value: number;
}

export class NvmlSession {
  readonly library: NvmlLibrary;
  readonly #u32 = new Uint32Array(1);
  readonly #u64 = new BigUint64Array(1);

  private constructor(library: NvmlLibrary) {
    this.library = library;
  }

  /** nvmlInit_v2; sessions are counted by the library, so threads and owners do not disturb each other. */
  static open(library: NvmlLibrary): NvmlSession {
    for (const name of ['nvmlInit_v2', 'nvmlShutdown', 'nvmlDeviceGetHandleByUUID'] as const) library.require(name);
    const session = new NvmlSession(library);
    session.check('nvmlInit_v2');
    return session;
  }

  close(): void {
    this.library.call('nvmlShutdown');
  }

  call(name: NvmlFunction, ...args: readonly NvmlArgument[]): number {
    return this.library.call(name, ...args);
  }

  /** Calls, once more after a transient code, and throws a typed error for anything but success. */
  check(name: NvmlFunction, ...args: readonly NvmlArgument[]): void {
    let code = this.call(name, ...args);
    if (nvmlPolicy(code) === 'transient') code = this.call(name, ...args);
    if (code !== NVML_SUCCESS) throw nvmlError(code, name);
  }

  /**
   * Calls for a fact that a board may keep to itself: once more after a transient code, and returns the code.
   * Throws a typed error only when the board is lost.
   */
  ask(name: NvmlFunction, ...args: readonly NvmlArgument[]): number {
    let code = this.call(name, ...args);
    if (nvmlPolicy(code) === 'transient') code = this.call(name, ...args);
    if (nvmlPolicy(code) === 'lost') throw nvmlError(code, name);
    return code;
  }

  /** Like `ask`, for a call whose last parameter is an `unsigned int *` or `int *`. */
  askU32(name: NvmlFunction, ...args: readonly NvmlArgument[]): Reading {
    const code = this.ask(name, ...args, this.#u32);
    return { code, value: code === NVML_SUCCESS ? this.#u32[0]! : Number.NaN };
  }

  /** A call whose last parameter is an `unsigned int *` or `int *`; never throws. */
  u32(name: NvmlFunction, ...args: readonly NvmlArgument[]): Reading {
    const code = this.call(name, ...args, this.#u32);
    return { code, value: code === NVML_SUCCESS ? this.#u32[0]! : Number.NaN };
  }

  /** A call whose last parameter is an `unsigned long long *`; exact up to 2^53; never throws. */
  u64(name: NvmlFunction, ...args: readonly NvmlArgument[]): Reading {
    const code = this.call(name, ...args, this.#u64);
    return { code, value: code === NVML_SUCCESS ? Number(this.#u64[0]!) : Number.NaN };
  }

  handle(name: NvmlFunction, key: string | number): NvmlHandle {
    this.#u64[0] = 0n;
    this.check(name, key, this.#u64);
    return this.#u64[0] as NvmlHandle;
  }

  /** A text without which nothing goes on; throws a typed error when the board does not tell. */
  requiredText(name: NvmlFunction, ...args: readonly NvmlArgument[]): string {
    const bytes = Buffer.alloc(TEXT_BYTES);
    this.check(name, ...args, bytes, TEXT_BYTES);
    return cString(bytes);
  }

  /** A call that fills a text buffer; empty when the board does not tell. */
  text(name: NvmlFunction, ...args: readonly NvmlArgument[]): string {
    const bytes = Buffer.alloc(TEXT_BYTES);
    return this.ask(name, ...args, bytes, TEXT_BYTES) === NVML_SUCCESS ? cString(bytes) : '';
  }

  /** A call that fills an array of u32 after telling its size; empty when the board does not tell. */
  list(name: NvmlFunction, ...args: readonly NvmlArgument[]): number[] {
    const count = Uint32Array.of(0);
    if (this.ask(name, ...args, count, null) !== NVML_INSUFFICIENT_SIZE) return [];
    const values = new Uint32Array(count[0]!);
    return this.ask(name, ...args, count, values) === NVML_SUCCESS ? [...values.subarray(0, count[0])] : [];
  }
}
