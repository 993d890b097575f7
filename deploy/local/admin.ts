import { join } from 'node:path';
import { encryptionEnv } from './supervisor/encryption.ts';
import { become, replaceBy } from './supervisor/replace.ts';

const ENTRY = join(import.meta.dirname, '../../services/gateway/src/admin.ts');
const args = process.argv.slice(2);

// The program needs nothing but MongoDB and the keys, and its help not even those.
if (args.length === 0 || args.includes('--help')) become(ENTRY, args, process.env);
else if (process.env.MONGODB_URL) become(ENTRY, args, withKeys());
else replaceBy(ENTRY, args, {});

function withKeys(): NodeJS.ProcessEnv {
  return { ...process.env, ...encryptionEnv(process.env) };
}
