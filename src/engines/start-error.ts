// The error of a failed start: what happened, what the log says about it, what to do.

import { EngineError, isBenchError } from '../core/index.ts';
import { type ExitInfo, exitText } from './engine-process.ts';
import { diagnose } from './startup-failure.ts';

export interface FailedStart {
  readonly error: unknown;
  /** How the leader ended, when it ended before we stopped it. */
  readonly exit: ExitInfo | null;
  readonly logText: string;
  readonly logPath: string;
  readonly command: readonly string[];
  /** Members that outlived SIGKILL. */
  readonly survivors: readonly number[];
}

const KILLED = 'Someone sent SIGKILL: the kernel does when memory runs out (`dmesg | tail` tells).';

/**
 * An exit before readiness is named after its cause in the log; a server that runs but does not behave keeps its own
 * code, with the log's last lines beside it. What is not an EngineError (a journal that failed, say) passes unchanged.
 */
export function startError({ error, exit, logText, logPath, command, survivors }: FailedStart): unknown {
  const isOurs = error instanceof EngineError;
  if (!isOurs && (exit === null || isBenchError(error))) return error;
  const found = diagnose(logText);
  const quote = found.lines.map((line) => `\n    ${line}`).join('');
  const alive = survivors.length === 0 ? '' : `\n  still alive after SIGKILL: pid ${survivors.join(', ')}`;
  const details = { reason: found.code, exit, lines: found.lines, logPath, command, survivors };
  if (exit === null && isOurs) {
    const log = quote === '' ? '\n  its log is empty' : `\n  last lines of its log:${quote}`;
    const more = found.code === 'engine_exited' ? '' : ` The log suggests that ${found.summary}: ${found.advice}`;
    const advice = `${error.advice}${more} The whole log: ${logPath}`;
    return new EngineError(error.code, `${error.message}${log}${alive}`, {
      advice,
      details: { ...error.details, ...details },
    });
  }
  const said = quote === '' ? 'its log is empty' : `its log says:${quote}`;
  const how = exit === null ? 'failed' : `ended with ${exitText(exit)}`;
  const killed = exit?.signal === 'SIGKILL' ? `${KILLED} ` : '';
  return new EngineError(found.code, `the server ${how} before it was ready: ${found.summary}; ${said}${alive}`, {
    advice: `${killed}${found.advice} The whole log: ${logPath}`,
    details,
  });
}
