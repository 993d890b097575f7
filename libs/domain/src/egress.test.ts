import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  cidrs,
  contains,
  type EgressPolicy,
  formatIp,
  parseCidr,
  parseIp,
  refusalOfAddress,
  refusalOfHost,
  refusalOfUrl,
  STRICT_EGRESS as strict,
  unmapped,
} from './egress.ts';

const loopback: EgressPolicy = { ...strict, allowLoopback: true };
const plain: EgressPolicy = { ...strict, allowHttp: true };
const opened = (...ranges: string[]): EgressPolicy => ({ ...strict, allowCidrs: cidrs(...ranges) });

/** First and last address of every range that is refused. */
const REFUSED = `
  0.0.0.0 0.255.255.255            10.0.0.0 10.255.255.255
  100.64.0.0 100.127.255.255       127.0.0.0 127.255.255.255
  169.254.0.0 169.254.255.255      172.16.0.0 172.31.255.255
  192.0.0.0 192.0.0.255            192.0.2.0 192.0.2.255
  192.31.196.0 192.31.196.255      192.52.193.0 192.52.193.255
  192.88.99.0 192.88.99.255        192.168.0.0 192.168.255.255
  192.175.48.0 192.175.48.255      198.18.0.0 198.19.255.255
  198.51.100.0 198.51.100.255      203.0.113.0 203.0.113.255
  224.0.0.0 239.255.255.255        240.0.0.0 255.255.255.255
  168.63.129.16 169.254.169.254
  :: ::1                           fc00:: fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  fe80:: febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  ff00:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  100:: 1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff  4000:: fbff::
  2001:: 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff
  2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff
  2002:: 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  3fff:: 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff
  2620:4f:8000:: 2620:4f:8000:ffff:ffff:ffff:ffff:ffff
  64:ff9b::7f00:1 64:ff9b::10.0.0.1  64:ff9b::a9fe:a9fe 64:ff9b:1::1
  ::ffff:127.0.0.1 ::127.0.0.1      ::ffff:8.8.8.8 ::8.8.8.8
`.match(/\S+/g) as string[];

/** Public addresses directly beside a refused range. */
const PUBLIC = `
  1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
  169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.31.195.255
  192.31.197.0 192.52.192.255 192.52.194.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0
  192.175.47.255 192.175.49.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255
  203.0.114.0 223.255.255.255 168.63.129.15 168.63.129.17
  2000:: 2000:ffff::1 2001:200:: 2001:db7:ffff::1 2001:db9:: 2003:: 2606:4700::1111
  2620:4f:7fff::1 2620:4f:8001:: 3ffe:ffff::1 3fff:1000:: 64:ff9b::8.8.8.8
`.match(/\S+/g) as string[];

describe('an address [security]', () => {
  test.each(REFUSED)('%s is refused', (address) => {
    expect(refusalOfAddress(address, strict)).toBe('address');
    const host = address.includes(':') ? `[${address}]` : address;
    expect(refusalOfUrl(new URL(`https://${host}/hook`), strict)).toBe('address');
  });

  test.each(PUBLIC)('%s is allowed', (address) => {
    expect(refusalOfAddress(address, strict)).toBeNull();
  });

  test.each(['', 'localhost', '1.2.3', 'undefined'])('%j is none and refused', (text) => {
    expect(refusalOfAddress(text, strict)).toBe('address');
  });
});

test('a host has only characters that a URL may have there [security]', () => {
  expect(refusalOfHost('a{b}.example.com', loopback)).toBe('host');
  expect(refusalOfHost('a"b`.example.com', loopback)).toBe('host');
  expect(refusalOfHost('a_b!.example.com', loopback)).toBeNull();
});

describe('loopback [security]', () => {
  test.each(['127.0.0.1', '127.255.255.255', '::1'])(
    '%s is opened by its switch alone',
    (address) => {
      expect(refusalOfAddress(address, loopback)).toBeNull();
      expect(refusalOfAddress(address, opened('127.0.0.0/8', '::1/128', '::/0'))).toBe('address');
    },
  );

  test('is called localhost then, and no other single label', () => {
    expect(refusalOfHost('localhost', loopback)).toBeNull();
    expect(refusalOfHost('localhost', strict)).toBe('host');
    expect(refusalOfHost('kafka', loopback)).toBe('host');
    expect(refusalOfHost('app.localhost', loopback)).toBe('host');
  });

  test.each(['10.0.0.1', '169.254.169.254', '::ffff:127.0.0.1', '::2'])(
    'switch leaves %s refused',
    (address) => {
      expect(refusalOfAddress(address, loopback)).toBe('address');
    },
  );
});

describe('EGRESS_ALLOW_CIDRS [security]', () => {
  test('opens private ranges and nothing beside them', () => {
    const policy = opened('10.1.0.0/16', 'fd12::/16');
    expect(refusalOfAddress('10.1.255.255', policy)).toBeNull();
    expect(refusalOfAddress('fd12::1', policy)).toBeNull();
    expect(refusalOfAddress('10.2.0.0', policy)).toBe('address');
  });

  test('opens an IPv4 range behind NAT64 too', () => {
    expect(refusalOfAddress('64:ff9b::a01:1', opened('10.0.0.0/8'))).toBeNull();
  });

  test.each([
    ...[
      '169.254.0.0',
      '169.254.169.254',
      '169.254.255.255',
      '168.63.129.16',
      'fe80::1',
      'fe80::1%2',
    ],
    ...[
      'fd00:ec2::254',
      'fd20:ce::254',
      '::ffff:169.254.169.254',
      '64:ff9b::a9fe:a9fe',
      '::ffff:127.0.0.1',
    ],
    ...['64:ff9b::7f00:1', '100.100.100.200', '192.0.0.192', '64:ff9b::100.100.100.200'],
  ])('never opens %s', (address) => {
    const policy = opened(
      '0.0.0.0/0',
      '100.64.0.0/10',
      '192.0.0.0/24',
      '::/0',
      '169.254.0.0/16',
      'fe80::/10',
      '64:ff9b::/96',
    );
    expect(refusalOfAddress(address, policy)).toBe('address');
  });
});

describe('EGRESS_DENY_CIDRS [security]', () => {
  const denied: EgressPolicy = {
    ...strict,
    allowLoopback: true,
    allowCidrs: cidrs('10.0.0.0/8'),
    denyCidrs: cidrs('10.1.0.0/16', '8.8.8.0/24', '127.0.0.2/32', '2606:4700::/32'),
  };

  test.each(['8.8.8.8', '10.1.2.3', '127.0.0.2', '2606:4700::1111', '64:ff9b::8.8.8.8'])(
    'refuses %s, though it is public or allowed',
    (address) => {
      expect(refusalOfAddress(address, denied)).toBe('address');
    },
  );

  test.each(['8.8.9.1', '10.2.0.1', '127.0.0.1', '2606:4701::1'])('leaves %s alone', (address) => {
    expect(refusalOfAddress(address, denied)).toBeNull();
  });
});

describe('EGRESS_DENY_HOSTS [security]', () => {
  const denied: EgressPolicy = { ...strict, denyHosts: ['api.example.com', '*.corp.example'] };

  test.each(['api.example.com', 'API.Example.com', 'api.example.com.', 'a.corp.example'])(
    'refuses %s',
    (host) => {
      expect(refusalOfUrl(new URL(`https://${host}/`), denied)).toBe('host');
    },
  );

  test.each(['example.com', 'v2.api.example.com', 'corp.example', 'acorp.example'])(
    'leaves %s alone',
    (host) => {
      expect(refusalOfUrl(new URL(`https://${host}/`), denied)).toBeNull();
    },
  );
});

describe('EGRESS_ALLOW_PORTS [security]', () => {
  const ports: EgressPolicy = { ...strict, allowHttp: true, allowPorts: [443, 8443, 22] };

  test.each([
    ['https://example.com/', null],
    ['https://example.com:8443/', null],
    ['http://example.com/', 'port'],
    ['https://example.com:9090/', 'port'],
    ['https://example.com:22/', 'port'],
  ])('decides on %s: %s', (url, refusal) => {
    expect(refusalOfUrl(new URL(url), ports)).toBe(refusal);
  });
});

describe('a URL [security]', () => {
  test.each([
    ...['2130706433', '0x7f.1', '017700000001', '127.1', '0x7f000001', '127.0.0.1.', '①②⑦.0.0.1'],
    ...['127。0。0。1', '0x7f.0x0.0x0.0x1', '0300.0250.1', '10.1'],
    ...['0177.0.0.1', '%31%32%37.0.0.1', '[::1]', '[0:0:0:0:0:0:0:1]', '[::ffff:7f00:1]'],
    ...['[::ffff:127.0.0.1]', '[::127.0.0.1]', '0', '[::]', '2852039166', '0xa9fea9fe'],
  ])('that spells a refused address as %s is refused', (host) => {
    expect(refusalOfUrl(new URL(`https://${host}/`), strict)).toBe('address');
  });

  test.each([
    ...['kafka', 'localhost', 'LOCALHOST', 'localhost.', 'db.local', 'metadata.google.internal'],
    ...['a.localhost', 'gateway.default.svc', 'x.svc.cluster.local', 'nas.home.arpa', 'a.onion'],
    ...['db.local.', 'DB.Local', 'local.', 'db.local..', 'localhost..'],
  ])('with the host %s is refused', (host) => {
    expect(refusalOfUrl(new URL(`https://${host}/`), strict)).toBe('host');
  });

  test.each(['example.com', 'example.com.', 'local.example.com', 'mylocal.com', 'notsvc.io'])(
    'with the host %s is allowed',
    (host) => {
      expect(refusalOfUrl(new URL(`https://${host}/`), strict)).toBeNull();
    },
  );

  test('is https; http only by its switch; nothing else ever', () => {
    expect(refusalOfUrl(new URL('http://example.com/'), strict)).toBe('scheme');
    expect(refusalOfUrl(new URL('http://example.com/'), plain)).toBeNull();
    expect(refusalOfUrl(new URL('ftp://example.com/'), plain)).toBe('scheme');
    expect(refusalOfUrl(new URL('file:///etc/passwd'), plain)).toBe('scheme');
  });

  test.each([
    0, 21, 22, 25, 1433, 2375, 2379, 3389, 5432, 6379, 6443, 8500, 9092, 9200, 10250, 11211, 16379,
    27017,
  ])('with port %d of infrastructure is refused', (port) => {
    expect(refusalOfUrl(new URL(`https://example.com:${port}/`), strict)).toBe('port');
  });

  test.each([80, 443, 8080, 8443, 3000, 65535])('a URL with port %d is allowed', (port) => {
    expect(refusalOfUrl(new URL(`https://example.com:${port}/`), strict)).toBeNull();
  });
});

describe('an address [security]', () => {
  test.each([
    ['0.0.0.0', 32, 0n],
    ['255.255.255.255', 32, 0xffffffffn],
    ['1.2.3.4', 32, 0x01020304n],
    ['::', 128, 0n],
    ['::1', 128, 1n],
    ['1::', 128, 1n << 112n],
    ['FE80::1%eth0', 128, (0xfe80n << 112n) | 1n],
    ['::ffff:1.2.3.4', 128, 0xffff01020304n],
    ['::ffff:102:304', 128, 0xffff01020304n],
    ['1:2:3:4:5:6:7:8', 128, 0x00010002000300040005000600070008n],
    ['1:2:3:4:5:6:1.2.3.4', 128, 0x00010002000300040005000601020304n],
  ])('%s is read', (text, bits, value) => {
    expect(parseIp(text)).toEqual({ bits, value });
  });

  test.each([
    ...['', 'localhost', '1.2.3', '1.2.3.4.5', '256.1.1.1', '1.2.3.4 ', '0x7f.0.0.1', '2130706433'],
    ...[':', ':::', '1::2::3', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7::8', '12345::'],
    ...['g::', '::1.2.3', '::1.2.3.256', '1.2.3.4::', '[::1]', '-1::', '::1.2.3.4:5'],
  ])('%j is none', (text) => {
    expect(parseIp(text)).toBeNull();
  });

  test('an address in IPv6 means the same to us as to new URL, however it is shortened', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const normal = new URL(`http://[${text}]/`).hostname.slice(1, -1);
        expect(parseIp(text)).not.toBeNull();
        expect(parseIp(text)).toEqual(parseIp(normal));
      }),
    );
  });
});

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['192.000.002.007', '192.0.2.7'],
  ['2001:0DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
  ['::', '::'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['0:0:0:0:0:FFFF:C000:0207', '192.0.2.7'],
  ['::192.0.2.7', '::c000:207'],
])('%s has the one text form %s, without a mapping', (text, form) => {
  const address = parseIp(text);
  expect(address && formatIp(unmapped(address))).toBe(form);
});

describe('a range [security]', () => {
  test.each([
    ...[
      '10.0.0.1/8',
      '10.0.0.0/33',
      '10.0.0.0',
      '10.0.0.0/',
      '10.0.0.0/-1',
      '::/129',
      'fe80::1/10',
    ],
    ...['', '/8', 'localhost/8'],
  ])('is not %j', (text) => {
    expect(parseCidr(text)).toBeNull();
    expect(() => cidrs(text)).toThrow('not a range');
  });

  test('contains its first and last address and neither neighbour', () => {
    const [range] = cidrs('172.16.0.0/12');
    const has = (text: string) => {
      const address = parseIp(text);
      return range && address && contains(range, address);
    };
    expect(has('172.16.0.0')).toBe(true);
    expect(has('172.31.255.255')).toBe(true);
    expect(has('172.15.255.255')).toBe(false);
    expect(has('172.32.0.0')).toBe(false);
  });

  test('of width 0 contains its whole family and nothing of the other', () => {
    const [v4, v6] = cidrs('0.0.0.0/0', '::/0');
    fc.assert(
      fc.property(fc.ipV4(), fc.ipV6(), (four, six) => {
        for (const [range, text, isInside] of [
          [v4, four, true],
          [v6, six, true],
          [v4, six, false],
          [v6, four, false],
        ] as const) {
          const address = parseIp(text);
          expect(range && address && contains(range, address)).toBe(isInside);
        }
      }),
    );
  });
});
