import { replaceBy } from './supervisor/replace.ts';
import { entryOf, opsPortOf, type ServiceName, SERVICES } from './supervisor/services.ts';

const DEFAULT_OPS_PORT = 9_101;
const name = SERVICES.find((service) => service === process.argv[2]);

if (name === undefined) {
  console.error(`Name one service: ${SERVICES.join(', ')}`);
  process.exitCode = 1;
} else {
  runService(name);
}

function runService(service: ServiceName): void {
  const ports = { OPS_PORT: String(opsPortOf(service, DEFAULT_OPS_PORT)) };
  replaceBy(entryOf(service), process.argv.slice(3), ports);
}
