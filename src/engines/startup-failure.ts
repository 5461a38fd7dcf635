// Why an engine failed, read from its log: a table of texts, the class that each means, and what to do about it.

import { isTraceback, type LogLine, meaningfulLines, parseLog, withContinuation } from './log-lines.ts';

export interface FailureClass {
  /** Stable code, part of the error. */
  readonly code: string;
  readonly summary: string;
  readonly advice: string;
  /** Any of these alternatives; all texts of an alternative must stand within three lines. */
  readonly texts: readonly (readonly string[])[];
}

/**
 * Root causes, most specific first. Texts are vLLM's own (0.16 to 0.32), of the libraries under it, and of the kernel.
 */
export const FAILURE_CLASSES: readonly FailureClass[] = [
  {
    code: 'engine_bad_flag',
    summary: 'it does not know a flag, or not this value of it',
    advice:
      "Correct engine.args (or the arm's engineArgs): flags change between versions, `vllm serve --help=all` lists those of yours.",
    texts: [['unrecognized arguments:'], ['invalid choice:'], ['error: argument ']],
  },
  {
    code: 'engine_port_busy',
    summary: 'the port was taken by someone else during the start',
    advice: 'Set engine.port to 0, which picks a free port for every launch, or stop the other server.',
    texts: [['Address already in use'], ['EADDRINUSE']],
  },
  {
    code: 'engine_memory_taken',
    summary: 'other processes hold the GPU memory that it wants',
    advice: 'Find them with nvidia-smi and stop them; an orphan of an earlier server is a common one.',
    texts: [
      ['Free memory on device', 'less than desired GPU memory utilization'],
      ['Error in memory profiling. Initial free memory'],
    ],
  },
  {
    code: 'engine_cpu_memory',
    summary: 'the machine has less free memory than it wants',
    advice: 'On a CPU set VLLM_CPU_KVCACHE_SPACE (GiB) in engine.env, for example to 1.',
    texts: [['Available memory on node', 'less than desired CPU memory utilization'], ['Cannot allocate memory']],
  },
  {
    code: 'engine_out_of_memory',
    summary: 'the GPU ran out of memory',
    advice:
      'Lower gpu-memory-utilization, max-num-seqs or max-num-batched-tokens in the engine arguments, or take a smaller model.',
    texts: [
      ['torch.OutOfMemoryError'],
      ['CUDA out of memory'],
      ['Failed to load model - not enough GPU memory'],
      ['occurred when warming up sampler with'],
    ],
  },
  {
    code: 'engine_no_kv_cache',
    summary: 'no memory is left for the KV cache',
    advice: 'Raise gpu-memory-utilization in the engine arguments, or take a smaller model.',
    texts: [['No available memory for the cache blocks']],
  },
  {
    code: 'engine_kv_too_small',
    summary: 'the KV cache cannot hold one request of the full length',
    advice: 'Lower model.maxModelLen (the log names the largest that fits) or give the KV cache more memory.',
    texts: [
      ['To serve at least one request with the model', 'max seq len'],
      ['is larger than the maximum number of tokens that can be stored in KV cache'],
      ['Cannot auto-fit max_model_len'],
    ],
  },
  {
    code: 'engine_length',
    summary: 'the model does not take this length',
    advice:
      "Lower model.maxModelLen to what the model's own config allows; without chunked prefill raise max-num-batched-tokens.",
    texts: [
      ['User-specified max_model_len', 'greater than the derived max_model_len'],
      ['max_num_batched_tokens', 'smaller than max_model_len'],
    ],
  },
  {
    code: 'engine_gpu_too_old',
    summary: 'the GPU cannot do what the arm asks',
    advice: 'Choose a dtype or quantization that this GPU supports, or a newer GPU.',
    texts: [
      ['is not supported for the current GPU. Minimum capability'],
      ['Bfloat16 is only supported on GPUs with compute capability of at least 8.0'],
      ['no kernel image is available'],
    ],
  },
  {
    code: 'engine_backend',
    summary: 'the attention backend does not fit',
    advice: 'Remove attention-backend from the engine arguments or choose one that the log lists as valid.',
    texts: [['Selected backend', 'is not valid for this configuration'], ['Unknown attention backend']],
  },
  {
    code: 'engine_driver',
    summary: 'the GPU driver is too old for this build',
    advice: 'Update the NVIDIA driver, or install a build for the CUDA version that the driver supports.',
    texts: [['NVIDIA driver on your system is too old'], ['CUDA driver version is insufficient'], ['Error 803']],
  },
  {
    code: 'engine_no_gpu',
    summary: 'it finds no GPU, or too few',
    advice:
      'Check nvidia-smi and the parallel sizes in the engine arguments. Without a GPU use the CPU build: scripts/install-vllm-cpu.',
    texts: [
      ['Failed to infer device type'],
      ['World size (', 'is larger than the number of available GPUs'],
      ['No CUDA GPUs are available'],
    ],
  },
  {
    code: 'engine_nccl',
    summary: 'the GPUs cannot talk to each other',
    advice: 'Run with NCCL_DEBUG=INFO in engine.env and look at the log; containers often need more /dev/shm.',
    texts: [['NCCL error'], ['DistBackendError'], ['ncclSystemError']],
  },
  {
    code: 'engine_gated_model',
    summary: 'the model may only be fetched with permission',
    advice: "Accept the model's licence on its page and set HF_TOKEN, or use a local copy.",
    texts: [['GatedRepoError'], ['You are trying to access a gated repo'], ['401 Client Error'], ['403 Client Error']],
  },
  {
    code: 'engine_network',
    summary: 'the model is not on this machine and could not be fetched',
    advice: 'Fetch the model beforehand, or allow the network (HF_HUB_OFFLINE=0).',
    texts: [['LocalEntryNotFoundError'], ['OfflineModeIsEnabled'], ['MaxRetryError']],
  },
  {
    code: 'engine_model_not_found',
    summary: 'there is no such model',
    advice: 'Check model.path and model.revision. For the tiny test model run scripts/make-tiny-model first.',
    texts: [
      ['Invalid repository ID or local directory specified'],
      ['RepositoryNotFoundError'],
      ['RevisionNotFoundError'],
      ['HFValidationError'],
      ['Repo id must'],
    ],
  },
  {
    code: 'engine_disk_full',
    summary: 'the disk, or /dev/shm, is full',
    advice: 'Free space on the disk of the caches (HF_HOME, VLLM_CACHE_ROOT); in a container raise --shm-size.',
    texts: [['No space left on device'], ['Bus error']],
  },
  {
    code: 'engine_config',
    summary: 'it refuses a setting',
    advice: 'Correct the setting that the quoted lines name.',
    texts: [['validation error for'], ['ValidationError']],
  },
  {
    code: 'engine_core_failed',
    summary: 'its engine core failed',
    advice: 'Look further up in the server log for the first error of the engine core or a worker.',
    texts: [
      ['EngineCore failed to start.'],
      ['Engine core initialization failed.'],
      ['WorkerProc failed to start.'],
      ['WorkerProc initialization failed'],
      ['Timed out waiting for engine core processes to start'],
      ['EngineCore encountered a fatal error'],
      ['EngineDeadError'],
      ['died unexpectedly (exit code:'],
      ['AsyncLLM output_handler failed'],
    ],
  },
];

export interface Diagnosis {
  readonly code: string;
  readonly summary: string;
  readonly advice: string;
  /** The lines that a person should see, the telling one first. */
  readonly lines: readonly string[];
}

const UNKNOWN = {
  code: 'engine_exited',
  summary: 'no known cause is in its log',
  advice: 'Look at the server log, or run the command by hand.',
};

const SPAN = 3;

/** First line of a run of three that holds one whole alternative of the class. */
function findClass(lines: readonly LogLine[], texts: FailureClass['texts']): LogLine | undefined {
  return lines.find((line, at) =>
    texts.some((all) => {
      if (!line.raw.includes(all[0]!)) return false;
      const span = lines.slice(at, at + SPAN).map((each) => each.raw);
      return all.every((text) => span.some((raw) => raw.includes(text)));
    }),
  );
}

const isFrontEnd = (line: LogLine): boolean => line.source?.startsWith('APIServer') ?? false;
/** INFO lines echo settings, which may hold any text; frames hold source code. */
const speaks = (line: LogLine): boolean => line.level !== 'INFO' && line.level !== 'DEBUG' && !isTraceback(line);

/** Reads the cause out of a log: lines of workers and engine first, the front end's traceback is an echo of them. */
export function diagnose(logText: string): Diagnosis {
  const lines = parseLog(logText).filter(speaks);
  const quoted = meaningfulLines(logText);
  const engine = lines.filter((line) => !isFrontEnd(line));
  const specific = FAILURE_CLASSES.filter(
    (each) => each.code !== 'engine_core_failed' && each.code !== 'engine_config',
  );
  const general = FAILURE_CLASSES.filter((each) => !specific.includes(each));
  for (const [classes, group] of [
    [specific, engine],
    [specific, lines],
    [general, lines],
  ] as const) {
    for (const each of classes) {
      const hit = findClass(group, each.texts);
      if (hit === undefined) continue;
      const first = withContinuation(logText, hit.raw);
      const { code, summary, advice } = each;
      return {
        code,
        summary,
        advice,
        lines: [...first, ...quoted.filter((line) => !first.includes(line))].slice(0, 4),
      };
    }
  }
  return { ...UNKNOWN, lines: quoted };
}
