import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { z } from 'zod';

const read = (path: string): unknown =>
  parse(readFileSync(join(import.meta.dirname, '../..', path), 'utf8'), { merge: true });

const prometheus = z
  .object({
    scrape_configs: z.array(
      z.object({
        job_name: z.string(),
        dns_sd_configs: z.tuple([z.object({ names: z.tuple([z.string()]), port: z.number() })]),
      }),
    ),
  })
  .parse(read('deploy/prometheus/prometheus.yaml'));

const compose = z
  .object({
    services: z.record(
      z.string(),
      z.looseObject({ environment: z.looseObject({ OPS_PORT: z.number().optional() }).optional() }),
    ),
  })
  .parse(read('docker-compose.yml'));

it('Prometheus scrapes the management port of each service of docker-compose.yml', () => {
  const scraped = prometheus.scrape_configs.map(({ job_name: job, dns_sd_configs: [found] }) => [
    job,
    found.names[0],
    found.port,
  ]);
  const served = Object.entries(compose.services).flatMap(([name, { environment }]) =>
    environment?.OPS_PORT === undefined ? [] : [[`posthorn-${name}`, name, environment.OPS_PORT]],
  );
  expect(scraped).toEqual(served);
});
