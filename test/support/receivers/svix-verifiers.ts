import {
  ensurePrograms,
  type NeededProgram,
} from '../../../tools/check-ops/programs/ensure-programs.ts';
import { runProgram } from '../../../tools/check-ops/programs/run-program.ts';
import { cachedFolder } from '../../../tools/local-stack/machine/cache.ts';

/** A delivery as its receiver passes it to a library. */
export interface SignedRequest {
  secret: string;
  headers: Readonly<Record<string, string>>;
  body: string;
}

/** Returns `accepted`, or the name of the error that the library throws, for each of the requests. */
export type VerifyAsSvix = (requests: readonly SignedRequest[]) => Promise<string[]>;

/** The newest of both major versions, as receivers have them. docs/dependencies.md names them. */
const VERSIONS = { npm: ['1.99.1', '2.5.0'], PyPI: ['1.99.1', '2.9.1'] } as const;

const PYTHON: readonly NeededProgram[] = [
  { name: 'python3', aptPackage: 'python3' },
  { name: 'pip3', aptPackage: 'python3-pip' },
];

const INSTALL_TIMEOUT_MS = 240_000;

const VERIFY_IN_NODE = `
const { Webhook } = await import('svix');
const verified = ({ secret, body, headers }) => {
  try {
    new Webhook(secret).verify(body, headers);
    return 'accepted';
  } catch (error) {
    return error.constructor.name;
  }
};
console.log(JSON.stringify(JSON.parse(process.env.SIGNED_REQUESTS).map(verified)));
`;

const VERIFY_IN_PYTHON = `
import json, os
from svix.webhooks import Webhook

def verified(given):
    try:
        Webhook(given["secret"]).verify(given["body"].encode(), given["headers"])
        return "accepted"
    except Exception as error:
        return type(error).__name__

print(json.dumps([verified(each) for each in json.loads(os.environ["SIGNED_REQUESTS"])]))
`;

export const SVIX_LIBRARIES = Object.entries(VERSIONS).flatMap(([registry, versions]) =>
  versions.map((version) => ({ name: `svix ${version} of ${registry}`, registry, version })),
);

/**
 * Returns Svix's own `Webhook.verify` by the names above. Downloads the libraries once per user, and throws when one of
 * them cannot be had: without it nobody knows whether the receivers of Svix accept deliveries.
 */
export async function installSvixLibraries(): Promise<ReadonlyMap<string, VerifyAsSvix>> {
  await ensurePrograms(PYTHON, console.log);
  const installed = SVIX_LIBRARIES.map(async ({ name, registry, version }) => {
    const verify = registry === 'npm' ? await inNode(version) : await inPython(version);
    return [name, verify] as const;
  });
  return new Map(await Promise.all(installed));
}

async function inNode(version: string): Promise<VerifyAsSvix> {
  const folder = await cachedFolder(`svix-npm-${version}`, async (prefix) => {
    const quietly = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
    const args = ['install', '--prefix', prefix, ...quietly, `svix@${version}`];
    await runProgram('npm', args, { cwd: prefix, timeoutMs: INSTALL_TIMEOUT_MS });
  });
  const args = ['--input-type=module', '--eval', VERIFY_IN_NODE];
  return async (requests) =>
    resultsOf(await runProgram(process.execPath, args, { cwd: folder, env: envOf(requests) }));
}

/** The packages have parts that are compiled for one version of Python. */
async function inPython(version: string): Promise<VerifyAsSvix> {
  const tag = (
    await runProgram('python3', ['-c', 'import sys; print(sys.implementation.cache_tag)'])
  ).trim();
  const folder = await cachedFolder(`svix-pypi-${version}-${tag}`, async (target) => {
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-compile'];
    const args = [...pip, '--target', target, `svix==${version}`];
    await runProgram('python3', args, { cwd: target, timeoutMs: INSTALL_TIMEOUT_MS });
  });
  const own = { PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' };
  return async (requests) => {
    const env = { ...own, ...envOf(requests) };
    return resultsOf(await runProgram('python3', ['-c', VERIFY_IN_PYTHON], { env }));
  };
}

function envOf(requests: readonly SignedRequest[]): { SIGNED_REQUESTS: string } {
  return { SIGNED_REQUESTS: JSON.stringify(requests) };
}

const resultsOf = (output: string): string[] => JSON.parse(output) as string[];
