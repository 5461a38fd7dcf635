// What a verification found: problems, each with its file, and how much was checked.

export interface VerifyProblem {
  /** Relative to the run folder. */
  readonly file: string;
  /** What is wrong: a path inside the file, or a sentence. */
  readonly what: string;
  /** The stored value. */
  readonly got?: unknown;
  /** The value that follows from the raw records. */
  readonly want?: unknown;
}

/** Collects problems and counts numbers. A flood of one file's problems is cut, and the cut is told. */
export class Findings {
  readonly problems: VerifyProblem[] = [];
  readonly notes: string[] = [];
  numbersChecked = 0;
  readonly #perFile = new Map<string, number>();

  add(problem: VerifyProblem): void {
    const count = (this.#perFile.get(problem.file) ?? 0) + 1;
    this.#perFile.set(problem.file, count);
    if (count <= MAX_PER_FILE) this.problems.push(problem);
    if (count === MAX_PER_FILE)
      this.problems.push({ file: problem.file, what: 'further problems of this file are left out' });
  }

  /** Adds a problem unless `holds`. */
  require(holds: boolean, file: string, what: string, values: { got?: unknown; want?: unknown } = {}): void {
    if (!holds) this.add({ file, what, ...values });
  }
}

const MAX_PER_FILE = 50;
