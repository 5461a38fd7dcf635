// Typed arrays that grow: the columns of a table whose length nobody knows beforehand.

class Growing<A extends Float64Array | Int32Array> {
  length = 0;
  #values: A;
  #make: (length: number) => A;

  constructor(make: (length: number) => A) {
    this.#make = make;
    this.#values = make(1024);
  }

  push(value: number): void {
    if (this.length === this.#values.length) this.#reserve(1);
    this.#values[this.length] = value;
    this.length += 1;
  }

  pushAll(values: readonly number[]): void {
    if (this.length + values.length > this.#values.length) this.#reserve(values.length);
    for (let i = 0; i < values.length; i++) this.#values[this.length + i] = values[i]!;
    this.length += values.length;
  }

  /** The values so far, in a buffer of their own size. */
  take(): A {
    const exact = this.#make(this.length);
    exact.set(this.#values.subarray(0, this.length));
    return exact;
  }

  #reserve(extra: number): void {
    const grown = this.#make(Math.max(this.length + extra, this.#values.length * 2));
    grown.set(this.#values);
    this.#values = grown;
  }
}

export const growingFloats = () => new Growing<Float64Array>((length) => new Float64Array(length));
export const growingInts = () => new Growing<Int32Array>((length) => new Int32Array(length));
