import { describe, expect, it } from '@jest/globals';
import { createPrivateKey } from 'node:crypto';
import { selfSigned } from '../../../../test/support/receivers/self-signed.ts';
import { tlsOf, type TlsFields } from './endpoint-tls.ts';

const NOW_MS = Date.now();
const DAY_MS = 86_400_000;
const own = selfSigned('client.example.com');
const other = selfSigned('authority.example.com');
const expired = selfSigned('old.example.com', { validUntilMs: NOW_MS - 1_000 });

const pkcs8 = { type: 'pkcs8', format: 'pem' } as const;
const encrypted = createPrivateKey(own.key)
  .export({ ...pkcs8, cipher: 'aes-256-cbc', passphrase: 'hush' })
  .toString();

describe('the TLS settings of a webhook', () => {
  it('are a certificate with its key, authorities, or both', () => {
    const client = { certificate: own.cert, key: own.key };
    expect(tlsOf(client, NOW_MS)).toEqual({ kind: 'settings', tls: { client, ca: null } });
    expect(tlsOf({ ca: other.cert }, NOW_MS)).toEqual({
      kind: 'settings',
      tls: { client: null, ca: other.cert },
    });
    const both = { ...client, ca: other.cert };
    expect(tlsOf(both, NOW_MS)).toEqual({ kind: 'settings', tls: { client, ca: other.cert } });
  });

  it('may have comments around certificates and another format of the key, which are not stored', () => {
    const sec1 = createPrivateKey(own.key).export({ type: 'sec1', format: 'pem' }).toString();
    const fields = {
      certificate: `# Ours\n${own.cert}`,
      key: sec1,
      ca: `First\n${other.cert}\nSecond\r\n${own.cert}`,
    };
    expect(tlsOf(fields, NOW_MS)).toEqual({
      kind: 'settings',
      tls: { client: { certificate: own.cert, key: own.key }, ca: other.cert + own.cert },
    });
  });

  const notPem = 'must be certificates in PEM, and nothing else';
  const noKey = 'must be a private key in PEM that is not encrypted';
  const cutOff = own.cert.slice(0, -30);
  const garbled = own.cert.replace(/[A-Za-z0-9]{20}\n/, 'AAAAAAAAAAAAAAAAAAAA\n');
  it.each<[string, TlsFields, [string, string][]]>([
    ['nothing', {}, [['certificate', 'is required, or ca']]],
    ['a certificate alone', { certificate: own.cert }, [['key', 'is required with a certificate']]],
    ['a key alone', { key: own.key }, [['certificate', 'is required with a key']]],
    [
      'the key of another certificate',
      { certificate: own.cert, key: other.key },
      [['key', 'is not the key of the first certificate']],
    ],
    ['an encrypted key', { certificate: own.cert, key: encrypted }, [['key', noKey]]],
    ['a certificate as key', { certificate: own.cert, key: own.cert }, [['key', noKey]]],
    ['other text', { ca: 'no certificate' }, [['ca', notPem]]],
    ['a certificate that is cut off', { ca: cutOff }, [['ca', notPem]]],
    ['a private key among authorities', { ca: other.cert + other.key }, [['ca', notPem]]],
    ['a garbled certificate', { ca: garbled }, [['ca', 'certificate 1 cannot be read']]],
    [
      'an expired certificate',
      { certificate: expired.cert, key: expired.key },
      [['certificate', 'certificate 1 has expired']],
    ],
    [
      'an expired authority',
      { ca: own.cert + expired.cert },
      [['ca', 'certificate 2 has expired']],
    ],
    ['six authorities', { ca: own.cert.repeat(6) }, [['ca', 'must have at most 5 certificates']]],
    [
      'two wrong fields',
      { certificate: 'x', key: 'y', ca: 'z' },
      [
        ['certificate', notPem],
        ['ca', notPem],
        ['key', noKey],
      ],
    ],
  ])('are refused with %s', (_what, fields, problems) => {
    const expected = problems.map(([path, message]) => ({ path, message }));
    expect(tlsOf(fields, NOW_MS)).toEqual({ kind: 'refused', problems: expected });
  });

  it('are refused with a certificate whose date is none', () => {
    const der = Buffer.from(own.cert.replaceAll(/-----[A-Z ]+-----/g, ''), 'base64');
    const utcTime = der.indexOf(Buffer.from([0x17, 13]));
    der.write('no date', utcTime + 2, 'latin1');
    const ca = `-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----\n`;
    expect(tlsOf({ ca }, NOW_MS)).toEqual({
      kind: 'refused',
      problems: [{ path: 'ca', message: 'certificate 1 cannot be read' }],
    });
  });

  it('may have a certificate that is not valid yet', () => {
    const { cert: ca } = selfSigned('next.example.com', { validFromMs: NOW_MS + DAY_MS / 2 });
    expect(tlsOf({ ca }, NOW_MS)).toEqual({ kind: 'settings', tls: { client: null, ca } });
  });
});
