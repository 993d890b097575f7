import { z } from 'zod';
import { idText } from './field-types.ts';
import { STORE_PAYLOADS } from './message.ts';
import { description, type ObjectTable, SHARED_FIELDS } from './object-fields.ts';

const storePayloads = z.enum(STORE_PAYLOADS, `must be one of ${STORE_PAYLOADS.join(', ')}`);

/** The fields that a client gives to an app. Responses do not name its project (C5.5). */
export const APP_FIELDS = {
  ...SHARED_FIELDS,
  projectId: {
    contract: 'C5.5',
    request: idText('proj'),
    given: 'at creation',
    isRequired: true,
    audit: 'shown',
  },
  description: {
    contract: 'C5.2',
    request: description,
    create: description.meta({ default: '' }),
    given: 'always',
    without: '',
    response: z.string().meta({ description: 'Empty when none was given' }),
    audit: 'shown',
  },
  storeResponses: {
    contract: 'C5.9',
    request: z.boolean('must be true or false').meta({
      description:
        'Whether attempts are stored with the response of the endpoint. True when left out',
    }),
    given: 'always',
    without: undefined,
    whenAbsent: true,
    response: z.boolean().optional().meta({ description: 'Absent until it is given' }),
    audit: 'shown',
  },
  storePayloads: {
    contract: 'C5.10',
    request: storePayloads.meta({
      id: 'StorePayloads',
      description:
        '`until-delivered` erases the payload of a message once every delivery is `delivered`. `retained` when left out',
    }),
    given: 'always',
    without: undefined,
    whenAbsent: 'retained',
    response: z.enum(STORE_PAYLOADS).optional().meta({ description: 'Absent until it is given' }),
    audit: 'shown',
  },
} as const satisfies ObjectTable;
