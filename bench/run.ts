import { parseArgs } from 'node:util';
import { readTarget } from './target.ts';
import { closedLoop, openLoop, type Load } from './load.ts';
import { startReceivers } from './receivers.ts';
import { printReport } from './report.ts';

const HELP = `npm run bench -- [--connections 64 | --rate 650] [--seconds 20] [--warmup 10] [--endpoints 20]

Loads the running Posthorn (npm start) over loopback and prints what it accepted and delivered:
a closed loop with so many connections, or an open loop with so many messages per second, whose
latencies count from the intended send time. Stops by itself.`;

const { values } = parseArgs({
  options: {
    connections: { type: 'string', default: '64' },
    rate: { type: 'string' },
    seconds: { type: 'string', default: '20' },
    warmup: { type: 'string', default: '10' },
    endpoints: { type: 'string', default: '20' },
    help: { type: 'boolean' },
  },
});

async function run(): Promise<void> {
  const target = readTarget();
  const receivers = await startReceivers(Number(values.endpoints));
  try {
    const webhookIds = await target.createWebhooks(receivers.urls);
    const load: Load = { target, webhookIds, receivers };
    const connections = Number(values.connections);
    console.log(`warming up for ${values.warmup} s`);
    await closedLoop(load, { connections, seconds: Number(values.warmup) });
    const seconds = Number(values.seconds);
    const result =
      values.rate === undefined
        ? await closedLoop(load, { connections, seconds })
        : await openLoop(load, { ratePerSecond: Number(values.rate), seconds });
    printReport(result, seconds);
    process.exitCode = result.missing === 0 && result.refused === 0 ? 0 : 1;
  } finally {
    receivers.close();
  }
}

if (values.help) console.log(HELP);
else await run();
