// 200 requests at once to the port named first, from a process that may open few files; prints how each ended.

import { LoadClient } from '../../../src/loadgen/client.ts';

const port = Number(process.argv[2]);
const outcomes: Record<string, number> = {};
const errors = new Set<string>();
const client = new LoadClient({
  target: { address: '127.0.0.1', port },
  sockets: 0,
  now: () => performance.now() * 1e6,
  totalTimeoutMs: null,
  idleTimeoutMs: 20_000,
  onFinished: ({ result }) => {
    const { outcome, errorText } = result!;
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    if (outcome === 'client_error') errors.add(errorText ?? '');
  },
});
for (let index = 0; index < 200; index++) {
  const job = { index, scheduledNs: 0, requestedTokens: 1, promptTokensSent: 1, ignoreEos: true };
  client.send(job, Buffer.from('GET / HTTP/1.1\r\n\r\n'));
}
await new Promise((done) => setTimeout(done, 500));
client.cancelAll('cancelled', null);
client.close();
console.log(JSON.stringify({ outcomes, errors: [...errors] }));
