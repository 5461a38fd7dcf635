// A server process that behaves or misbehaves as its first argument says. Run as: node fake-engine.ts SCENARIO mock-engine FLAGS

import { spawn } from 'node:child_process';
import { createServer, type ServerResponse } from 'node:http';

const [scenario = 'good', , ...flags] = process.argv.slice(2);
const flag = (name: string): string => flags[flags.indexOf(`--${name}`) + 1] ?? '';
const sleeper = 'setInterval(() => {}, 1000)';

/** A child that leaves session and group, drops the environment and takes another title: nothing names it as ours. */
function spawnRunaway(): void {
  const code = `process.title = 'innocent'; ${sleeper}`;
  const child = spawn(process.execPath, ['-e', code], { detached: true, env: {}, stdio: 'ignore' });
  console.log(`runaway ${child.pid}`);
}

function dieAtStart(): never {
  console.log('(APIServer pid=1) INFO 01-01 00:00:00 [api.py:1] non-default args: {}');
  console.log(
    '(EngineCore pid=2) ERROR 01-01 00:00:01 [core.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried 20 GiB',
  );
  console.log('(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above.');
  process.exit(1);
}

function complete(body: { prompt: number[]; max_tokens: number }): string {
  const added = scenario === 'adds-a-token' ? 1 : 0;
  const ids = Array.from({ length: body.max_tokens }, (_, at) => at + 4);
  const events: unknown[] = ids.map((id, at) => ({
    choices: [{ index: 0, text: ` t${id}`, finish_reason: at === ids.length - 1 ? 'length' : null, token_ids: [id] }],
  }));
  const usage = { prompt_tokens: body.prompt.length + added, completion_tokens: ids.length };
  return [...events, { choices: [], usage }].map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
}

if (scenario === 'dies-at-start') dieAtStart();
if (scenario === 'runaway') spawnRunaway();

const model = {
  id: scenario === 'other-name' ? 'other' : flag('served-name'),
  max_model_len: Number(flag('max-model-len')),
};
function answer(url: string | undefined, response: ServerResponse): boolean {
  const json = (body: unknown) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
  if (url === '/health') response.writeHead(scenario === 'never-ready' ? 503 : 200).end();
  else if (url === '/v1/models') json({ data: [model] });
  else if (url === '/version') json({ version: '0.0.1' });
  else if (url === '/metrics') response.end('vllm:num_requests_running{engine="0"} 0.0\n');
  else return false;
  return true;
}

const server = createServer((request, response) => {
  if (answer(request.url, response)) return;
  let text = '';
  request.on('data', (part) => {
    text += part;
  });
  request.on('end', () => {
    if (scenario === 'dies-on-canary') process.exit(3);
    response.setHeader('content-type', 'text/event-stream').end(`${complete(JSON.parse(text))}data: [DONE]\n\n`);
  });
});
if (scenario !== 'silent') server.listen(Number(flag('port')), flag('host'));
else setInterval(() => {}, 1000);
