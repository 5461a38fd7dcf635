// One error, as a person reads it: what happened, where, what to do.

import type { BenchError } from '../core/errors.ts';

export function formatError(error: BenchError): string {
  const lines = [`tokbench: ${error.message}`, `  code: ${error.code}`, `  advice: ${error.advice}`];
  return `${lines.join('\n')}\n`;
}
