import { get } from 'node:http';

/** The management ports of gateway, dispatcher, retry and ingest: which of them this container runs is in its command, not here. */
const DEFAULT_PORTS = ['9101', '9102', '9103', '9104'];
const TIMEOUT_MS = 3_000;

/** Returns the status of the response; rejects without one. */
async function statusOf(port: string, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = get(
      { host: '127.0.0.1', port, path, timeout: TIMEOUT_MS, agent: false },
      (response) => {
        response.resume();
        resolve(response.statusCode);
      },
    );
    request.on('error', reject);
    request.on('timeout', () => request.destroy(new Error(`no response in ${TIMEOUT_MS} ms`)));
  });
}

/** The health check of the image: exits 0 when the service of this container responds 200, 1 when it does not. */
const path = process.argv[2] ?? '/livez';
const ports = process.env.OPS_PORT ? [process.env.OPS_PORT] : DEFAULT_PORTS;
const answers = await Promise.allSettled(ports.map((port) => statusOf(port, path)));
for (const answer of answers) {
  if (answer.status === 'rejected') console.error(String(answer.reason));
  else console.log(`${path} responds ${String(answer.value)}`);
}
const isHealthy = answers.some((answer) => answer.status === 'fulfilled' && answer.value === 200);
process.exitCode = isHealthy ? 0 : 1;
