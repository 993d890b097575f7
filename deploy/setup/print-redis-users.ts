import { usersFile } from './redis-rights.ts';

const [prefix = 'posthorn:', kind] = process.argv.slice(2);
process.stdout.write(usersFile({ prefix, isCluster: kind === 'cluster' }));
