// Request bytes built ahead of their due time, so that nothing but the write lies between due and sent.

export interface BodyQueueOptions {
  readonly count: number;
  readonly build: (position: number) => Buffer;
  /** How far ahead to build: so many requests, or so many bytes. */
  readonly maxRequests?: number;
  readonly maxBytes?: number;
}

const MAX_REQUESTS = 2048;
const MAX_BYTES = 32 * 1024 * 1024;

export class BodyQueue {
  #options: BodyQueueOptions;
  #ready: Buffer[] = [];
  #bytes = 0;
  /** Position of the first request that was not taken yet. */
  #taken = 0;

  constructor(options: BodyQueueOptions) {
    this.#options = options;
  }

  /** Bytes of the next request; positions are taken in order. */
  take(): Buffer {
    const ready = this.#ready.shift();
    const bytes = ready ?? this.#options.build(this.#taken);
    if (ready !== undefined) this.#bytes -= ready.length;
    this.#taken += 1;
    return bytes;
  }

  /** Builds at most `limit` more. Returns false when there was nothing to do. */
  fill(limit: number): boolean {
    const { count, build, maxRequests = MAX_REQUESTS, maxBytes = MAX_BYTES } = this.#options;
    for (let built = 0; built < limit; built++) {
      const position = this.#taken + this.#ready.length;
      if (position >= count || this.#ready.length >= maxRequests || this.#bytes >= maxBytes) return built > 0;
      const bytes = build(position);
      this.#ready.push(bytes);
      this.#bytes += bytes.length;
    }
    return true;
  }
}
