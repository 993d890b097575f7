import { createCompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import { createLinkStore } from '@posthorn/platform/mongo/companies/links/links.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { settings } from '@posthorn/platform/service/settings/settings.ts';
import type { Command } from 'commander';
import { createRecordAdmin } from '../audit/record-admin.ts';
import type { OutputOptions } from '../output.ts';
import { databaseConfig, runOnDatabase } from '../run-on-database.ts';
import { createSignInLink } from './sign-in-link.ts';

const linkConfig = databaseConfig.extend(settings.publicUrl);

/** Where the gateway of `npm start` listens. */
const LOCAL_URL = 'http://127.0.0.1:8080';

interface LinkOptions extends OutputOptions {
  url?: string;
}

/** Adds `dashboard-link`. */
export function addSignInLinkCommand(program: Command): void {
  program
    .command('dashboard-link <companyId>')
    .description('make a link that signs in to the dashboard once, within ten minutes')
    .option('--url <url>', `address of the gateway; PUBLIC_URL, or ${LOCAL_URL}, when left out`)
    .option('--json', 'print JSON')
    .action((companyId: string, options: LinkOptions) =>
      runOnDatabase(options, linkConfig, (db, { PUBLIC_URL = LOCAL_URL }) =>
        createSignInLink(
          {
            companies: createCompanyStore(db),
            links: createLinkStore(db),
            record: createRecordAdmin(db),
            nowMs: systemClockMs,
          },
          companyId,
          options.url ?? PUBLIC_URL,
        ),
      ),
    );
}
