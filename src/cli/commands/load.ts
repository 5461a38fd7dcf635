// tokbench load: one load against an OpenAI-compatible server that is already running.

import type { Command } from 'commander';
import type { LoadFlags } from '../load-flags.ts';
import { count, nonNegative, positive, wholeNumber } from '../numbers.ts';

const list = (text: string, before: readonly string[]): readonly string[] => [...before, text];

export function configure(command: Command): void {
  command
    .requiredOption('--base-url <url>', 'the server: http://host:port, or https://gateway/base/v1')
    .requiredOption('--model <name>', 'model name, as the server knows it')
    .option('--request-rate <per s>', 'open loop: mean arrivals per second, Poisson', positive)
    .option('--burstiness <shape>', 'gamma-distributed gaps of this shape; 1 is Poisson, below 1 burstier', positive)
    .option('--max-concurrency <n>', 'closed loop: so many requests at once, all slots start at 0', count)
    .option('--num-prompts <n>', 'so many requests: the window ends with the last of them', count)
    .option('--duration <s>', "measured window, seconds (default: the method's floor, at least 180)", positive)
    .option('--warmup <s>', "arrivals before the window, seconds (default: the method's, at least 30)", nonNegative)
    .option('--tail <s>', "arrivals after the window, seconds (default: the method's, at least 15)", nonNegative)
    .option('--drain <s>', 'longest wait for answers still running, seconds (default: 60)', nonNegative)
    .option('--random-input-len <tokens>', 'tokens of every prompt', count, 1024)
    .option('--random-output-len <tokens>', 'tokens asked of every answer', count, 128)
    .option('--token-ids <lo,hi>', 'token ids that prompts use, [lo, hi)', '256,1024')
    .option('--ignore-eos', 'every answer has exactly the asked length (default)')
    .option('--no-ignore-eos', 'answers may end by themselves')
    .option('--endpoint <path>', '/v1/completions or /v1/chat/completions', '/v1/completions')
    .option('--chat', 'the same as --endpoint /v1/chat/completions')
    .option('--tokenizer <path>', 'tokenizer file or folder: sends prompts as text where ids are not taken')
    .option('--dataset-name <name>', 'random, custom (JSONL of your own prompts) or sharegpt', 'random')
    .option('--dataset-path <file>', 'file of the custom or sharegpt dataset')
    .option('--random-prefix-len <tokens>', 'first tokens that all prompts share, of --random-input-len', wholeNumber)
    .option('--goodput <limit...>', 'latency promise, ms: ttft:1000 tpot:50')
    .option(
      '--seed <n>',
      'seed of arrivals and prompts (default: a new one each time, so that no cache knows them)',
      wholeNumber,
    )
    .option('--api-key-env <name>', 'environment variable that holds the API key')
    .option('--api-key-file <path>', 'file that holds the API key')
    .option(
      '--header <name: value>',
      'further header; \u0024{NAME} stands for an environment variable; may be repeated',
      list,
      [],
    )
    .option('--extra-body <json>', 'fields added to every request body, as a JSON object')
    .option('--ca-file <pem>', 'authorities to trust instead of the system, for https')
    .option('--insecure', 'accept any certificate; the capture says so')
    .option('--gpu <which>', 'energy of GPUs on this machine: none, nvml or nvml:UUID,UUID (default: none)')
    .option(
      '--energy <source>',
      'as --gpu, or dcgm:URL of a dcgm-exporter on the server; dcgm:URL#UUID,UUID for several',
    )
    .option('--board-limit <W>', 'default power limit of one board, where the exporter does not tell it', positive)
    .option('--rapl', 'CPU and memory energy of this machine as well, beside the boards and never added to them')
    .option('--meter-csv <file>', 'power of an external meter as well, from the CSV file that it is writing')
    .option('--preflight <s>', 'each of the three polls that find the tick of the counter (default: 5)', positive)
    .option('--soak <s>', 'closed loop before the load, seconds', nonNegative, 0)
    .option('--price <dollars>', 'price of the server in dollars per hour; without it no dollars are shown', positive)
    .option('--workers <n>', 'threads that send the load', count, 1)
    .option('--out <dir>', 'capture; must be new or empty (default: results/raw/load-<UTC time>)')
    .option('--requests-csv <file>', 'one line per request, all phases, CLOCK_MONOTONIC ns')
    .option(
      '--calibrate',
      'let the client prove its floor and ceiling first, about 10 s; without it the capture says so',
    )
    .option('--report', 'write the report at the end; `tokbench report` does it later')
    .option('--json', 'result as JSON on stdout')
    .addHelpText(
      'after',
      `
Example:
  tokbench load --base-url http://127.0.0.1:8000 --model bench --request-rate 100 --duration 15 \\
    --random-input-len 64 --random-output-len 64

Exit codes: 0 the load is valid, 1 it failed or every request did, 2 wrong use, 3 NOT VALID (the rules that were hit
are named), 4 environment. docs/LOAD.md explains every flag.`,
    )
    .action(async (flags: LoadFlags) => {
      const { loadServer } = await import('../load-server.ts');
      process.exitCode = await loadServer(flags);
    });
}
