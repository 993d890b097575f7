import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { METHOD_RULES } from '@posthorn/domain/auth-methods.ts';
import { FIELD_RULES, type FieldRule } from '@posthorn/domain/webhook-fields.ts';
import { table } from './table.ts';

const EXAMPLE_URL = 'https://example.com/hooks';

const INTRODUCTION = `# Fields of a webhook

The rules of each field are in [contract.md](contract.md); the last column names them.

- **Given**: whether requests give the field at creation only, or in updates too.
- **Default**: the value without the field; that of \`name\` is the one for the URL \`${EXAMPLE_URL}\`, and
  \`secret\` is generated.
- **Responses**: _list_ means all responses with a webhook, _get_ those of create and get. Callers who may not see secrets get
  masked fields as \`********\`.
- **Audit log**: what an event has of a change. Values are those before and after.
- **Sealed**: only the holder of an encryption key can read the value in MongoDB.

\`node docs/write-webhook-fields.ts\` generates this page from \`libs/domain/src/webhook-fields.ts\` and
\`libs/domain/src/auth-methods.ts\`; a test checks that it is up to date.
`;

const AUTHENTICATION = `## Authentication

\`authMethod\` is \`hmac\` unless given. Its fields may be given at creation and in updates, and are sealed together with it.
`;

/** Returns the text of docs/webhook-fields.md. */
export function webhookFieldsText(): string {
  const heading = ['Field', 'Given', 'Default', 'Responses', 'Audit log', 'Sealed', 'Rules'];
  const fields = table([heading, ...FIELD_RULES.map(([name, rule]) => rowOf(name, rule))]);
  const methods = Object.entries(METHOD_RULES).flatMap(([method, { fields }]) =>
    Object.entries(fields).map(([name, { isRequired, initially, as, secret, audit }]) => [
      `\`${name}\``,
      `\`${method}\``,
      isRequired ? '**required**' : code(initially?.('the `secret`')),
      `\`${as}\`${secret ? ', masked' : ''}`,
      IN_AUDIT_LOG[audit],
    ]),
  );
  const authHeading = [
    'Field',
    'Method',
    'Default',
    'Within `authMethod` of responses',
    'Audit log',
  ];
  return [INTRODUCTION, fields, AUTHENTICATION, table([authHeading, ...methods])].join('\n');
}

const RESPONSES = { everywhere: 'list', 'by itself': 'get', never: 'none' };

const IN_AUDIT_LOG: Record<FieldRule['audit'], string> = {
  shown: 'values',
  url: 'values without those of the query',
  hidden: 'that it changed',
  origin: 'that it changed, and whether the client chose it',
  'each header': 'which headers changed',
  'each field': 'as the fields below',
  never: 'nothing',
};

function rowOf(name: string, rule: FieldRule): string[] {
  const { contract, given, isRequired, initially, shown, mask, sealed, audit } = rule;
  const initial = initially ? code(initially({ url: EXAMPLE_URL })) : '';
  return [
    `\`${name}\``,
    given,
    isRequired ? '**required**' : initial,
    RESPONSES[shown] + (mask && shown !== 'never' ? ', masked' : ''),
    IN_AUDIT_LOG[audit],
    sealed ? 'yes' : 'no',
    contract,
  ];
}

function code(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.includes('`') ? text : `\`${text}\``;
}

if (import.meta.main) {
  writeFileSync(join(import.meta.dirname, 'webhook-fields.md'), webhookFieldsText());
}
