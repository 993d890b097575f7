import { join } from 'node:path';
import { encryptionEnv } from './supervisor/encryption.ts';
import { become, replaceBy } from './supervisor/replace.ts';

const ENTRY = join(import.meta.dirname, '../../services/admin/src/main.ts');
const args = process.argv.slice(2);

// Dead letters lie in Kafka; everything else needs MongoDB and the keys, and the help not even those.
const needed = args[0] === 'dead-letters' ? process.env.KAFKA_BROKERS : process.env.MONGODB_URL;
if (args.length === 0 || args.includes('--help')) become(ENTRY, args, process.env);
else if (needed) become(ENTRY, args, withKeys());
else replaceBy(ENTRY, args, {});

function withKeys(): NodeJS.ProcessEnv {
  return { ...process.env, ...encryptionEnv(process.env) };
}
