// The seeded random stream of every schedule, prompt and order: xoshiro128** from a label (METHOD 4.4).

import { createHash } from 'node:crypto';

const TWO_32 = 2 ** 32;
const TWO_26 = 2 ** 26;
const TWO_53 = 2 ** 53;

/** A reproducible source of random numbers; equal labels give equal streams on every machine. */
export class RandomStream {
  #s0: number;
  #s1: number;
  #s2: number;
  #s3: number;

  constructor(s0: number, s1: number, s2: number, s3: number) {
    const allZero = (s0 | s1 | s2 | s3) === 0;
    this.#s0 = allZero ? 1 : s0 >>> 0;
    this.#s1 = s1 >>> 0;
    this.#s2 = s2 >>> 0;
    this.#s3 = s3 >>> 0;
  }

  /** The next 32-bit word. */
  u32(): number {
    const scrambled = Math.imul(rotateLeft(Math.imul(this.#s1, 5), 7), 9) >>> 0;
    const shifted = this.#s1 << 9;
    this.#s2 ^= this.#s0;
    this.#s3 ^= this.#s1;
    this.#s1 ^= this.#s2;
    this.#s0 ^= this.#s3;
    this.#s2 ^= shifted;
    this.#s3 = rotateLeft(this.#s3, 11);
    return scrambled;
  }

  /** A uniform double in [0, 1) with 53 random bits, from two words. */
  u53(): number {
    const high = this.u32() >>> 5;
    const low = this.u32() >>> 6;
    return (high * TWO_26 + low) / TWO_53;
  }

  /** A uniform integer in [0, m), 1 <= m <= 2^32, without modulo bias. */
  below(m: number): number {
    const limit = Math.floor(TWO_32 / m) * m;
    let word = this.u32();
    while (word >= limit) word = this.u32();
    return word % m;
  }
}

/** One standard normal variate of two uniforms (Box and Muller 1958; the second of the pair is not used). */
export function standardNormal(stream: RandomStream): number {
  const radius = Math.sqrt(-2 * Math.log1p(-stream.u53()));
  return radius * Math.cos(2 * Math.PI * stream.u53());
}

const rotateLeft = (word: number, by: number): number => (word << by) | (word >>> (32 - by));

/** Stream(label): seeded by the first 16 bytes of SHA-256 of the label in UTF-8, as four big-endian words. */
export function labelStream(label: string): RandomStream {
  const digest = createHash('sha256').update(label, 'utf8').digest();
  return new RandomStream(
    digest.readUInt32BE(0),
    digest.readUInt32BE(4),
    digest.readUInt32BE(8),
    digest.readUInt32BE(12),
  );
}

/** A shuffled copy: for k = length - 1 down to 1, swap item k with item below(k + 1). */
export function shuffle<T>(items: readonly T[], stream: RandomStream): T[] {
  const shuffled = [...items];
  for (let k = shuffled.length - 1; k >= 1; k--) {
    const j = stream.below(k + 1);
    const item = shuffled[k]!;
    shuffled[k] = shuffled[j]!;
    shuffled[j] = item;
  }
  return shuffled;
}
