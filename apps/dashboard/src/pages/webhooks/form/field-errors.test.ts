import { expect, it } from '@jest/globals';
import { errorIn } from '../../../parts/form-fields.ts';
import { hasField } from './field-errors.ts';

it('says at a field what is wrong with it, entry by entry', () => {
  const problems = [
    { path: 'customHeaders.1.value', message: 'must be given again' },
    { path: 'customHeaders.2.key', message: 'is given twice' },
    { path: 'tls.key', message: 'is encrypted' },
    { path: 'name', message: 'must have 2 to 100 characters' },
  ];
  expect(errorIn(problems, 'customHeaders')).toBe(
    'entry 2 must be given again; entry 3 is given twice',
  );
  expect(errorIn(problems, 'tls.key')).toBe('is encrypted');
  expect(errorIn(problems, 'name')).toBe('must have 2 to 100 characters');
  expect(errorIn(problems, 'url')).toBeUndefined();
});

it('leaves to the box what has no field', () => {
  const has = (path: string): boolean => hasField({ path, message: '' });
  expect(['url', 'tls.ca', 'basicAuthPassword', 'eventTypes.3', 'metadata.plan'].every(has)).toBe(
    true,
  );
  expect(['', 'appId', 'tls', 'names'].some(has)).toBe(false);
});
