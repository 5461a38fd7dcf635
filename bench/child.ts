// A child process of the bench: it gets one message, answers with one, and its CPU time is its own.

import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf } from '../src/core/index.ts';
import { pinned } from './machine.ts';

/** As bin/tokbench starts the program: compiled code is kept between runs. */
const childEnv = () => ({ NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache'), ...process.env });
const ANSWER_LIMIT_MS = 100_000;

/**
 * Runs a script of this folder on `core` under the same Node, hands it `question`, resolves with its answer.
 * @throws Error when it ends without an answer or says nothing within `limitMs`, 100 s by default.
 */
export function askChild<Answer>(
  script: string,
  question: unknown,
  core: number | undefined,
  limitMs: number = ANSWER_LIMIT_MS,
): Promise<Answer> {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const [program, ...args] = pinned(core, [process.execPath, ...process.execArgv, path]);
  const child = spawn(program!, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization: 'advanced',
    env: childEnv(),
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), limitMs);
  return new Promise<Answer>((resolve, reject) => {
    child.once('error', reject);
    child.once('message', (message) => resolve(message as Answer));
    child.once('exit', (code, signal) => reject(new Error(`${script} ended without an answer (${signal ?? code})`)));
    child.send(question as object);
  }).finally(() => clearTimeout(timer));
}

/** The child's side: answers the one question that it gets, then lets go. */
export function answerParent<Question, Answer>(answer: (question: Question) => Promise<Answer> | Answer): void {
  process.once('message', async (question) => {
    try {
      const reply = await answer(question as Question);
      process.send!(reply, () => process.disconnect());
    } catch (error) {
      process.stderr.write(`${messageOf(error)}\n`);
      process.exit(1);
    }
  });
}
