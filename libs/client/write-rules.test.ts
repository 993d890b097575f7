import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { notStoredBy } from '@posthorn/domain/message.ts';
import { APP_RULES } from './src/rules.ts';
import { RULES_FILE, rulesText } from './write-rules.ts';

it('has the rules as `node libs/client/write-rules.ts` writes them', () => {
  expect(readFileSync(RULES_FILE, 'utf8')).toBe(rulesText());
});

it('has the defaults of apps that decide what is stored', () => {
  const { storeResponses, storePayloads } = APP_RULES;
  const settings = {
    storeResponses: storeResponses.default,
    storePayloads: storePayloads.default,
  };
  expect(notStoredBy(settings)).toEqual(notStoredBy({}));
});
