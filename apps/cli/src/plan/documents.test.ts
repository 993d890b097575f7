import { describe, expect, test } from '@jest/globals';
import { parseDocuments, type Secret } from './documents.ts';

const parse = (text: string, env: Record<string, string> = {}) =>
  parseDocuments([{ name: 'a.yaml', text }], env);

function problemOf(text: string, env: Record<string, string> = {}): string {
  try {
    parse(text, env);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

const SECRET = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=';
const LONG = Buffer.alloc(65).toString('base64');
const HOOK = 'kind: Webhook\nuid: h\nurl: https://example.com\nappId: uid:a\n';

describe('documents', () => {
  test.each([
    [
      'kind: EventType\nuid: x\nprojectId: uid:p',
      'a.yaml:1: name must be 1 to 128 letters, digits or . _ : / -, and more than dots',
    ],
    [
      'kind: EventType\nname: ..\nprojectId: uid:p',
      'a.yaml:2: name must be 1 to 128 letters, digits or . _ : / -, and more than dots',
    ],
    ['kind: EventType\nname: a/b', 'a.yaml:1: EventType a/b: projectId is missing'],
    [
      'kind: EventType\nname: a\nprojectId: uid:p\nschema: []',
      'a.yaml:4: EventType a: schema must be an object',
    ],
    [
      'kind: EventType\nname: a\nprojectId: uid:p\n---\nkind: EventType\nname: a\nprojectId: uid:p',
      'a.yaml:5: EventType uid:p/a is also at a.yaml:1',
    ],
    ['kind: Pod\nuid: x', 'a.yaml:1: kind must be Project, EventType, App, Webhook, not Pod'],
    ['uid: x', 'a.yaml:1: kind must be Project, EventType, App, Webhook'],
    ['kind: App\nuid: a b', 'a.yaml:2: uid must be 1 to 128 letters, digits or . _ -'],
    ['kind: App\nuid: 17', 'a.yaml:2: uid must be 1 to 128 letters, digits or . _ -'],
    [
      'kind: Project\nuid: x\nname: X\nnmae: Y',
      'a.yaml:4: Project x: nmae is not a field of this kind',
    ],
    [
      'kind: Project\nuid: x\nname: X\nconstructor: Y',
      'a.yaml:4: Project x: constructor is not a field of this kind',
    ],
    ['kind: Project\nuid: x', 'a.yaml:1: Project x: name is missing'],
    ['kind: App\nuid: x\nname: X', 'a.yaml:1: App x: projectId is missing'],
    ['kind: Project\nuid: x\nname: null', 'a.yaml:3: Project x: name must not be null'],
    ['kind: Project\nuid: x\nname: 5', 'a.yaml:3: Project x: name must be text: put it in quotes'],
    [
      'kind: Webhook\nuid: w\nurl: https://a.example\nappId: uid:a\nfilter: [eu]',
      'a.yaml:5: Webhook w: filter must be an object',
    ],
    [
      'kind: Project\nuid: x\nname: X\nmetadata: {n: 5}',
      'a.yaml:4: Project x: metadata must have text for each key: put numbers and true in quotes',
    ],
    [`${HOOK}timeoutSeconds: .inf`, 'a.yaml:5: Webhook h: timeoutSeconds must be a number'],
    [`${HOOK}disabled: "yes"`, 'a.yaml:5: Webhook h: disabled must be true or false'],
    [`${HOOK}eventTypes: [1]`, 'a.yaml:5: Webhook h: eventTypes must be a list of text'],
    [
      `${HOOK}secret: whsec_hidden`,
      'a.yaml:5: Webhook h: secret is a secret: write {secretFrom: {env: NAME}}',
    ],
    [
      `${HOOK}secret: {secretFrom: {env: A, x: 1}}`,
      'a.yaml:5: Webhook h: secret is a secret: write {secretFrom: {env: NAME}}',
    ],
    [
      `${HOOK}customHeaders: [{key: X-A, value: "********"}]`,
      'a.yaml:5: Webhook h: customHeaders has a mask for X-A: write {secretFrom: {env: NAME}}',
    ],
    [
      `${HOOK}tls: {key: secret}`,
      'a.yaml:5: Webhook h: tls must have {secretFrom: {env: NAME}} for key',
    ],
    [`${HOOK}---\n${HOOK}`, 'a.yaml:6: Webhook h is also at a.yaml:1'],
    ['- 5', 'a.yaml:1: must have kind, uid or name, and fields'],
    ['kind: Project\nkind: App', 'a.yaml:2: Map keys must be unique'],
    ['kind: !!js/function x', 'a.yaml:1: Unresolved tag: tag:yaml.org,2002:js/function'],
  ])('are refused with file and line: %j', (text, problem) => {
    expect(problemOf(text)).toBe(problem);
  });

  test('report every problem, and no value of a secret', () => {
    const problem = problemOf(`${HOOK}secret: whsec_hidden\nfoo: 1\n---\nkind: Pod\nuid: x\n`);
    expect(problem.split('\n  ')).toEqual([
      'The documents have 3 problems:',
      'a.yaml:5: Webhook h: secret is a secret: write {secretFrom: {env: NAME}}',
      'a.yaml:6: Webhook h: foo is not a field of this kind',
      'a.yaml:8: kind must be Project, EventType, App, Webhook, not Pod',
    ]);
    expect(problem).not.toContain('hidden');
  });

  test('are bounded in aliases, depth and size', () => {
    const levels = Array.from({ length: 9 }, (_, n) => {
      return `l${n + 1}: &l${n + 1} [${Array(9).fill(`*l${n}`).join(',')}]`;
    });
    expect(problemOf(`l0: &l0 [x]\n${levels.join('\n')}`)).toContain('Excessive alias count');
    expect(problemOf('['.repeat(100_000))).toContain('a.yaml');
    expect(problemOf(`# ${'x'.repeat(9_000_000)}`)).toContain('more than 8388608 bytes');
    expect(problemOf('---\n- {}\n'.repeat(20_001))).toContain('more than 20000 documents');
  });

  test('may share parts by anchors, be a list, and have nothing between marks', () => {
    const text = `---\n# nothing\n---\nkind: Project\nuid: a\nname: &n Shop\nmetadata: {of: *n}\n---\n- {kind: Project, uid: b, name: B}\n`;
    expect(parse(text).map(({ uid, source }) => [uid, source])).toEqual([
      ['a', 'a.yaml:4'],
      ['b', 'a.yaml:9'],
    ]);
    expect(parse(text)[0]?.fields).toEqual({ name: 'Shop', metadata: { of: 'Shop' } });
  });

  test.each(['x', 'whsec_', SECRET.slice(0, -1), SECRET.replace('M', '!'), `whsec_${LONG}`])(
    'are refused before the plan when the secret of a webhook is %s',
    (text) => {
      expect(problemOf(`${HOOK}secret: {secretFrom: {env: S}}`, { S: text })).toBe(
        'a.yaml:5: Webhook h: secret from S must be whsec_ and the base64 of 24 to 64 bytes',
      );
    },
  );

  test('have secrets from the environment, where an empty variable is none', () => {
    const secretOf = (env: Record<string, string>): unknown =>
      (
        parse(`${HOOK}secret: {secretFrom: {env: S}}`, env)[0]?.fields as { secret: Secret }
      ).secret.reveal();
    expect([secretOf({ S: SECRET }), secretOf({ S: '' }), secretOf({})]).toEqual([
      SECRET,
      undefined,
      undefined,
    ]);
  });
});
