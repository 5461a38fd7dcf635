// What is wrong in a config file, one line per problem, as one typed error.

import { ConfigError } from '../core/index.ts';

export interface Problem {
  readonly line: number;
  readonly column: number;
  /** Path, value and expectation, in words. */
  readonly text: string;
}

/** All problems of a file in one error, in the order of the file: `file:line:column: what`. */
export function configError(code: string, file: string, problems: readonly Problem[]): ConfigError {
  const sorted = problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
  const message = sorted.map(({ line, column, text }) => `${file}:${line}:${column}: ${text}`).join('\n');
  return new ConfigError(code, message, {
    advice:
      'Correct what is named above and start again. The commented files in configs/ show how a config is written.',
    details: { file, problems: sorted },
  });
}

/** `loads[0].rate` for ['loads', 0, 'rate']. */
export function pathText(path: readonly (string | number)[]): string {
  return path
    .map((segment, index) => (typeof segment === 'number' ? `[${segment}]` : index === 0 ? segment : `.${segment}`))
    .join('');
}
