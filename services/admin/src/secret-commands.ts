import { NO_COMPANY } from '@posthorn/domain/audit.ts';
import {
  countByKey,
  type Resealed,
  resealSigningKeys,
  resealWebhooks,
} from '@posthorn/platform/mongo/companies/resealing.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import {
  createVault,
  type SealedValueError,
  type Vault,
} from '@posthorn/platform/security/vault.ts';
import type { Command } from 'commander';
import type { mongo } from 'mongoose';
import { createRecordAdmin, databaseConfig, type RecordAdmin, runOnDatabase } from './command.ts';
import { type OutputOptions } from './output.ts';

const secretsConfig = databaseConfig.extend({
  ...settings.encryption,
});

interface SecretsDeps {
  db: mongo.Db;
  vault: Vault;
  record: RecordAdmin;
}

/** Adds `secrets rotate|status` (docs/secrets.md). */
export function addSecretCommands(program: Command): void {
  const group = program
    .command('secrets')
    .description('Stored secrets of webhooks, and signing keys (docs/secrets.md)');
  group
    .command('rotate')
    .description('encrypt all of them with the first key of ENCRYPTION_KEYS; can be repeated')
    .option('--json', 'print JSON')
    .action((output: OutputOptions) => run(output, rotateSecrets));
  group
    .command('status')
    .description('count them by the key that encrypted them')
    .option('--json', 'print JSON')
    .action((output: OutputOptions) => run(output, secretsStatus));
}

function run(output: OutputOptions, work: (deps: SecretsDeps) => Promise<object>): Promise<void> {
  return runOnDatabase(output, secretsConfig, (db, { ENCRYPTION_KEYS }) =>
    work({
      db,
      vault: createVault(ENCRYPTION_KEYS),
      record: createRecordAdmin(db),
    }),
  );
}

/** Sets exit code 1 while something of another key remains, so that no script removes that key. */
async function rotateSecrets({ db, vault, record }: SecretsDeps): Promise<object> {
  const fields = { keyId: vault.currentKeyId };
  const target = { kind: 'encryptionKeys' as const, id: vault.currentKeyId };
  const result = await record(
    { companyId: NO_COMPANY, action: 'encryption_keys.rotated', target, fields },
    () => resealAll(db, vault),
    (resealed) => ({ ...fields, ...resealed }),
  );
  if (result.remaining > 0) process.exitCode = 1;
  return result;
}

async function resealAll(db: mongo.Db, vault: Vault): Promise<Resealed> {
  const onUnopened = ({ message }: SealedValueError): void => {
    process.stderr.write(`${message}\n`);
  };
  const webhooks = await resealWebhooks(db, vault, onUnopened);
  const signingKeys = await resealSigningKeys(db, vault, onUnopened);
  return {
    resealed: webhooks.resealed + signingKeys.resealed,
    remaining: webhooks.remaining + signingKeys.remaining,
  };
}

async function secretsStatus({ db, vault }: SecretsDeps): Promise<object> {
  return {
    currentKeyId: vault.currentKeyId,
    webhooksByKeyId: await countByKey(db, 'webhooks'),
    signingKeysByKeyId: await countByKey(db, 'signingKeys'),
  };
}
