import { rolesScript } from './mongodb-rights.ts';

const [database = 'posthorn'] = process.argv.slice(2);
process.stdout.write(rolesScript(database));
