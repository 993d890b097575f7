import { join } from 'node:path';
import { replaceBy } from './supervisor/replace.ts';

const ENTRY = join(import.meta.dirname, '../../services/gateway/src/admin.ts');

replaceBy(ENTRY, process.argv.slice(2), {});
