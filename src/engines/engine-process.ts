// One engine process: started in its own session, its output going straight to the log file, its end observed.

import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, closeSync, constants, mkdirSync, openSync, statSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { EngineError, EnvironmentError, messageOf } from '../core/index.ts';
import type { Environment } from './child-env.ts';
import { readProcess } from './proc.ts';

export interface ExitInfo {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** `exit code 1`, or `signal SIGKILL`. */
export const exitText = (exit: ExitInfo): string =>
  exit.signal === null ? `exit code ${exit.code ?? 'unknown'}` : `signal ${exit.signal}`;

export interface EngineProcess {
  readonly pid: number;
  readonly startTime: string | null;
  /** Size of the log before the start: what lies before it belongs to someone else. */
  readonly logOffset: number;
  readonly exited: Promise<ExitInfo>;
  exit(): ExitInfo | null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Full path of a program given as a path or as a name on the PATH; null when there is none. */
export function findProgram(command: string, searchPath: string): string | null {
  if (command.includes('/')) return isExecutable(resolve(command)) ? resolve(command) : null;
  const folders = searchPath.split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, command)).find(isExecutable) ?? null;
}

function openLog(path: string): { fd: number; offset: number } {
  try {
    mkdirSync(dirname(path), { recursive: true });
    const fd = openSync(path, 'a');
    return { fd, offset: statSync(path).size };
  } catch (error) {
    throw new EnvironmentError('log_not_writable', `the engine's log ${path} cannot be written: ${messageOf(error)}`, {
      advice: 'Check that the output folder is writable and that the disk has space left.',
      cause: error,
    });
  }
}

function started(child: ChildProcess, command: string): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('spawn', () => resolve(child.pid!));
    child.once('error', (error) =>
      reject(
        new EngineError('engine_not_started', `${command} could not be started: ${messageOf(error)}`, {
          advice:
            'Run the command by hand and see what it says; a broken interpreter line of the script is a common cause.',
          exitCode: 4,
          cause: error,
        }),
      ),
    );
  });
}

/**
 * Starts `command` as the leader of a new session and process group, without stdin, stdout and stderr appended to
 * `logPath` through the file descriptor itself, so that the log outlives us.
 */
export async function startProcess(
  command: readonly string[],
  environment: Environment,
  logPath: string,
): Promise<EngineProcess> {
  const [program, ...args] = command as [string, ...string[]];
  const { fd, offset } = openLog(logPath);
  try {
    const child = spawn(program, args, { detached: true, stdio: ['ignore', fd, fd], env: { ...environment } });
    let ended: ExitInfo | null = null;
    const exited = new Promise<ExitInfo>((resolve) => {
      child.once('exit', (code, signal) => {
        ended = { code, signal };
        resolve(ended);
      });
    });
    const startTime = child.pid === undefined ? null : (readProcess(child.pid)?.startTime ?? null);
    const pid = await started(child, program);
    return { pid, startTime, logOffset: offset, exited, exit: () => ended };
  } finally {
    closeSync(fd);
  }
}
