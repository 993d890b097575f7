import { join } from 'node:path';
import { become, replaceBy } from './supervisor/replace.ts';

const ENTRY = join(import.meta.dirname, '../../services/gateway/src/admin.ts');
const args = process.argv.slice(2);

// The program needs nothing but MongoDB, and its help not even that.
const needsNoStack =
  Boolean(process.env.MONGODB_URL) || args.length === 0 || args.includes('--help');
if (needsNoStack) become(ENTRY, args, process.env);
else replaceBy(ENTRY, args, {});
