import type { Command } from '@commander-js/extra-typings';
import { isCancel, password, text } from '@clack/prompts';
import { Interrupted, SettingsFailure, UsageFailure } from '../failures.ts';
import {
  type Profile,
  readUserConfig,
  requireHttpUrl,
  writeProjectProfile,
  writeUserConfig,
} from '../profiles.ts';
import type { Session } from '../session.ts';

const DEFAULT_PROFILE = 'default';

/** `login`, `logout`, `whoami` and `profile`. */
export function addAccountCommands(program: Command, session: Session): void {
  addLogin(program, session);
  program
    .command('logout')
    .description('remove the current profile, or that of --profile, with its key')
    .action(() => {
      const { current } = readUserConfig(session.world);
      const name = session.options.profile ?? current;
      if (name === null) throw new SettingsFailure('Nobody is logged in: see posthorn login');
      removeProfile(session, name);
    });
  program
    .command('whoami')
    .description('print the company, the key and its scopes, and the version of the server')
    .action(async () => {
      const me = await session.api.me();
      const { url, source } = session.credentials;
      session.output.value(session.output.isJson ? me : { ...me, url, credentials: source });
    });
  addProfileCommands(program, session);
}

function addLogin(program: Command, session: Session): void {
  program
    .command('login')
    .description('store an address and an API key as a profile, and use it from now on')
    .option('--url <url>', 'address of the gateway')
    .option('--key-stdin', 'read the key from standard input')
    .option('--local', 'use it in this folder and below only, by .posthorn/config.toml')
    .addHelpText(
      'after',
      '\nThe name of the profile is that of --profile, else "default". There is no option for the key itself:\n' +
        'other users see the arguments of a command, and shells store them.',
    )
    .action(async ({ url: given, keyStdin, local }) => {
      if (local && session.options.profile === undefined) {
        throw new UsageFailure('Name the profile of --local with --profile');
      }
      const url =
        given ??
        session.options.apiUrl ??
        session.world.env.POSTHORN_URL ??
        (await askUrl(session));
      requireHttpUrl('The address of the gateway', url);
      const apiKey = keyStdin ? (await session.readStdin()).trim() : await askKey(session);
      const me = await session.connect({ url, apiKey }).me();
      const name = session.options.profile ?? DEFAULT_PROFILE;
      const where = local ? ', in this folder and below' : '';
      const text = `Logged in to ${url} as profile ${name}${where}.`;
      store(session, { text, value: me }, () => {
        storeProfile(session, name, { url, apiKey }, { isCurrent: !local });
        if (local) writeProjectProfile(session.world.folder, name);
      });
    });
}

/** Changes files of this machine, and prints what was done. A dry run prints it as what would be done. */
function store(
  { options, output }: Session,
  { text, value }: { text: string; value: object },
  write: () => void,
): void {
  if (options.dryRun) output.note('Nothing is stored. Without --dry-run:');
  else write();
  output.done(text, value);
}

async function askUrl(session: Session): Promise<string> {
  if (!session.isTerminal) throw new UsageFailure('Set --url, or POSTHORN_URL');
  const answer = await text({
    message: 'Address of the gateway',
    placeholder: 'https://posthorn.example.com',
    ...session.promptStreams,
  });
  if (isCancel(answer)) throw new Interrupted();
  return answer;
}

async function askKey(session: Session): Promise<string> {
  if (!session.isTerminal) throw new UsageFailure('Use --key-stdin where nobody can be asked');
  const answer = await password({ message: 'API key', ...session.promptStreams });
  if (isCancel(answer)) throw new Interrupted();
  return answer;
}

function addProfileCommands(program: Command, session: Session): void {
  const profile = program.command('profile').description('profiles: addresses with a key each');
  profile
    .command('list')
    .description('list the profiles, without their keys')
    .action(() => {
      const { current, profiles } = readUserConfig(session.world);
      const items = [...profiles].map(([name, { url }]) => ({
        name,
        url,
        isCurrent: name === current,
      }));
      session.output.table(items, {
        '': ({ isCurrent }) => (isCurrent ? '*' : ''),
        name: ({ name }) => name,
        url: ({ url }) => url,
      });
    });
  profile
    .command('use')
    .argument('<name>')
    .description('make a profile the current one')
    .action((name) => {
      const config = readUserConfig(session.world);
      if (!config.profiles.has(name))
        throw new SettingsFailure(`There is no profile ${name}: see posthorn profile list`);
      store(session, { text: `The current profile is ${name}.`, value: { name } }, () => {
        writeUserConfig(session.world, { ...config, current: name });
      });
    });
  profile
    .command('delete')
    .argument('<name>')
    .description('remove a profile with its key')
    .action((name) => {
      removeProfile(session, name);
    });
}

function storeProfile(
  session: Session,
  name: string,
  profile: Profile,
  { isCurrent }: { isCurrent: boolean },
): void {
  const { current, profiles } = readUserConfig(session.world);
  const changed = new Map(profiles).set(name, profile);
  writeUserConfig(session.world, { current: isCurrent ? name : current, profiles: changed });
}

function removeProfile(session: Session, name: string): void {
  const { current, profiles } = readUserConfig(session.world);
  const kept = new Map(profiles);
  if (!kept.delete(name))
    throw new SettingsFailure(`There is no profile ${name}: see posthorn profile list`);
  const text = `The profile ${name} is removed. Its API key is still valid.`;
  store(session, { text, value: { name } }, () => {
    writeUserConfig(session.world, { current: current === name ? null : current, profiles: kept });
  });
}
