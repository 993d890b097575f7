import {
  ensurePrograms,
  type NeededProgram,
} from '../../../tools/check-ops/programs/ensure-programs.ts';
import { runProgram } from '../../../tools/check-ops/programs/run-program.ts';
import { cachedFolder } from '../../../tools/local-stack/machine/cache.ts';

/** A delivery as the receiver of a library gets it. */
export interface SignedRequest {
  headers: Readonly<Record<string, string>>;
  body: string;
}

/** Throws what the library says when it does not accept the request. */
export type VerifyAsSvix = (secret: string, request: SignedRequest) => Promise<void>;

/** The newest of both major versions, as receivers have them. docs/dependencies.md names them. */
const VERSIONS = { npm: ['1.99.1', '2.5.0'], PyPI: ['1.99.1', '2.9.1'] } as const;

const PYTHON: readonly NeededProgram[] = [
  { name: 'python3', aptPackage: 'python3' },
  { name: 'pip3', aptPackage: 'python3-pip' },
];

const INSTALL_TIMEOUT_MS = 240_000;

const VERIFY_IN_NODE = `
const { Webhook } = await import('svix');
const { secret, body, headers } = JSON.parse(process.env.SIGNED_REQUEST);
new Webhook(secret).verify(body, headers);
`;

const VERIFY_IN_PYTHON = `
import json, os
from svix.webhooks import Webhook
given = json.loads(os.environ["SIGNED_REQUEST"])
Webhook(given["secret"]).verify(given["body"].encode(), given["headers"])
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
  return async (secret, request) => {
    const args = ['--input-type=module', '--eval', VERIFY_IN_NODE];
    await runProgram(process.execPath, args, { cwd: folder, env: given(secret, request) });
  };
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
  return async (secret, request) => {
    const env = { ...given(secret, request), PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' };
    await runProgram('python3', ['-c', VERIFY_IN_PYTHON], { env });
  };
}

function given(secret: string, request: SignedRequest): { SIGNED_REQUEST: string } {
  return { SIGNED_REQUEST: JSON.stringify({ secret, ...request }) };
}
