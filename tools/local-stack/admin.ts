import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readStackDir } from './settings.ts';
import { encryptionEnv } from './supervisor/services.ts';
import { execProgram, execOnStack } from './supervisor/exec-program.ts';

const ENTRY = join(import.meta.dirname, '../../services/admin/src/main.ts');
const args = process.argv.slice(2);

// Dead letters and topics are in Kafka; a replay needs MongoDB too. All other commands need MongoDB and the encryption keys, and the help needs neither.
const isOfKafka = ['dead-letters', 'ingest', 'topics'].includes(args[0] ?? '');
const needed = isOfKafka ? process.env.KAFKA_BROKERS : process.env.MONGODB_URL;
if (args.length === 0 || args.includes('--help')) execProgram(ENTRY, args, process.env);
else if (needed) execProgram(ENTRY, args, withKeys());
else execOnStack(ENTRY, args, localUrl());

/** Where links to the dashboard lead, unless the user says otherwise. */
function localUrl(): Record<string, string> {
  try {
    const path = join(readStackDir(process.env), 'credentials.json');
    const { baseUrl } = JSON.parse(readFileSync(path, 'utf8')) as { baseUrl?: string };
    return baseUrl === undefined ? {} : { PUBLIC_URL: baseUrl };
  } catch {
    return {};
  }
}

function withKeys(): NodeJS.ProcessEnv {
  return { ...process.env, ...encryptionEnv(process.env) };
}
