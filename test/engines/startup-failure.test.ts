import { describe, expect, test } from 'vitest';
import { EngineError, EnvironmentError } from '../../src/core/index.ts';
import { alarmLines, meaningfulLines, parseLogLine } from '../../src/engines/log-lines.ts';
import { nonDefaultArgs } from '../../src/engines/read-back.ts';
import { startError } from '../../src/engines/start-error.ts';
import { diagnose, FAILURE_CLASSES } from '../../src/engines/startup-failure.ts';
import { real } from './support/files.ts';

describe('a failed start of a real vLLM', () => {
  test.each([
    ['start_bad_flag.txt', 'engine_bad_flag', 'unrecognized arguments: --no-such-flag'],
    ['start_bad_setting.txt', 'engine_config', 'max_num_batched_tokens'],
    ['start_too_long.txt', 'engine_length', 'User-specified max_model_len (4096)'],
    ['start_no_model.txt', 'engine_model_not_found', 'no-such-folder'],
    ['start_offline.txt', 'engine_network', 'Cannot find an appropriate cached snapshot'],
    ['start_port_busy.txt', 'engine_port_busy', '[Errno 98] Address already in use'],
    ['core_killed.txt', 'engine_core_failed', 'AsyncLLM output_handler failed'],
  ])('%s is %s and quotes the telling line', (file, code, quote) => {
    const found = diagnose(real(file));
    expect(found.code).toBe(code);
    expect(found.lines.join('\n')).toContain(quote);
    expect(found.lines.length).toBeLessThanOrEqual(4);
  });

  test('a good start holds nothing that any class would take for a failure', () => {
    expect(diagnose(real('startup.txt')).code).toBe('engine_exited');
    expect(alarmLines(real('startup.txt'), 5)).toEqual([]);
  });
});

describe('texts of failures that need a GPU', () => {
  const at = (source: string, text: string, level = 'ERROR') =>
    `(${source} pid=7) ${level} 01-02 03:04:05 [core.py:1] ${text}`;

  test.each([
    [
      'engine_memory_taken',
      'ValueError: Free memory on device (1.0/80.0 GiB) on startup is less than desired GPU memory utilization (0.9)',
    ],
    ['engine_out_of_memory', 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB'],
    [
      'engine_no_kv_cache',
      'ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`',
    ],
    [
      'engine_kv_too_small',
      "To serve at least one request with the model's max seq len (8192), 4 GiB KV cache is needed; the estimated maximum model length is 4096.",
    ],
    ['engine_gpu_too_old', 'The quantization method fp8 is not supported for the current GPU. Minimum capability: 89.'],
    ['engine_backend', 'ValueError: Selected backend FLASHINFER is not valid for this configuration. Reason: [x]'],
    ['engine_driver', 'RuntimeError: The NVIDIA driver on your system is too old (found version 12020).'],
    ['engine_no_gpu', 'RuntimeError: Failed to infer device type'],
    ['engine_nccl', 'torch.distributed.DistBackendError: NCCL error in: ProcessGroup'],
    ['engine_gated_model', 'huggingface_hub.errors.GatedRepoError: 401 Client Error.'],
    ['engine_disk_full', 'OSError: [Errno 28] No space left on device'],
    ['engine_cpu_memory', 'ValueError: Available memory on node 0 (2/24) is less than desired CPU memory utilization'],
  ])('%s', (code, text) => {
    expect(diagnose(at('Worker_TP0', text)).code).toBe(code);
  });

  test('the worker is believed before the front end', () => {
    const log = [
      at('Worker', 'torch.OutOfMemoryError: CUDA out of memory.'),
      at('EngineCore', 'EngineCore failed to start.'),
      at('APIServer', 'RuntimeError: Failed to infer device type'),
    ].join('\n');
    expect(diagnose(log).code).toBe('engine_out_of_memory');
  });

  test('a wrapper is named only when no cause is known', () => {
    expect(diagnose(at('APIServer', 'Engine core initialization failed. See root cause above.')).code).toBe(
      'engine_core_failed',
    );
  });

  test('settings that the server echoes are no failures', () => {
    expect(diagnose(at('APIServer', "non-default args: {'model': 'NCCL error/CUDA out of memory'}", 'INFO')).code).toBe(
      'engine_exited',
    );
  });

  test('texts of one alternative may be wrapped over the next lines, not over the whole log', () => {
    const first = 'ValueError: Free memory on device (1/80 GiB) is';
    const second = 'less than desired GPU memory utilization';
    expect(diagnose(`${first}\n${second}`).code).toBe('engine_memory_taken');
    expect(diagnose(`${first}\nx\nx\nx\n${second}`).code).toBe('engine_exited');
  });

  test('every class has a code of its own, a summary and advice', () => {
    const codes = FAILURE_CLASSES.map((each) => each.code);
    expect(new Set(codes).size).toBe(codes.length);
    for (const each of FAILURE_CLASSES) {
      expect(each.code).toMatch(/^engine_[a-z_]+$/);
      expect(each.summary.length * each.advice.length * each.texts.length).toBeGreaterThan(0);
    }
  });
});

describe('log lines', () => {
  test('are split into process, level and text, colours taken off', () => {
    const line = parseLogLine('\u001b[1;36m(Worker_TP0 pid=12)\u001b[0;0m WARNING 12-01 02:33:06 [cpu.py:1] hello');
    expect(line).toMatchObject({ source: 'Worker_TP0', level: 'WARNING', text: 'hello' });
    expect(parseLogLine('plain text')).toMatchObject({ source: null, level: null, text: 'plain text' });
  });

  test('the last words of a server whose core was killed say so, without code of the traceback', () => {
    const words = alarmLines(real('core_killed.txt'), 3).join('\n');
    expect(words).toContain('engine core exited unexpectedly');
    expect(words).toContain('EngineDeadError');
    expect(words).not.toContain('await engine_core');
  });

  test('without alarms the last real lines are quoted, not banner, routes and access log', () => {
    const log = 'one\n▄▄ ▄█\nINFO: 127.0.0.1 - "GET /health HTTP/1.1" 200 OK\nRoute: /x, Methods: GET\n\ntwo\n';
    expect(meaningfulLines(log)).toEqual(['one', 'two']);
  });

  test('the arguments that differ from the defaults are found in the start log', () => {
    expect(nonDefaultArgs(real('startup.txt'))).toMatch(/^\{'model_tag': '\.\/tiny'.*'max_num_seqs': 8.*\}$/);
    expect(nonDefaultArgs('nothing')).toBeNull();
  });
});

describe('the error of a failed start', () => {
  const failed = { error: null, exit: null, logText: '', logPath: '/x/server.log', command: ['vllm'], survivors: [] };

  test('an exit is named after its cause and quotes it', () => {
    const error = startError({ ...failed, exit: { code: 2, signal: null }, logText: real('start_bad_flag.txt') });
    expect(error).toMatchObject({ code: 'engine_bad_flag', exitCode: 1, details: { reason: 'engine_bad_flag' } });
    expect((error as Error).message).toMatch(/exit code 2.*\n.*--no-such-flag/);
  });

  test('SIGKILL without a cause points at the memory', () => {
    const error = startError({ ...failed, exit: { code: null, signal: 'SIGKILL' } });
    expect(error).toMatchObject({ code: 'engine_exited', advice: expect.stringContaining('memory') });
    expect((error as Error).message).toContain('its log is empty');
  });

  test('a server that runs but misbehaves keeps its code and gets the log beside it', () => {
    const cause = new EngineError('engine_not_ready', 'not ready', { advice: 'Wait.' });
    const error = startError({
      ...failed,
      error: cause,
      logText: 'torch.OutOfMemoryError: CUDA out of memory',
      survivors: [77],
    });
    expect(error).toMatchObject({
      code: 'engine_not_ready',
      advice: expect.stringContaining('gpu-memory-utilization'),
    });
    expect((error as Error).message).toContain('pid 77');
  });

  test('what is no fault of the server passes unchanged', () => {
    const journal = new EnvironmentError('journal', 'no', { advice: 'x' });
    expect(startError({ ...failed, error: journal, exit: { code: 1, signal: null } })).toBe(journal);
    const bug = new TypeError('bug');
    expect(startError({ ...failed, error: bug })).toBe(bug);
  });
});
