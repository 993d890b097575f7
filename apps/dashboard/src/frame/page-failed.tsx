import { type ErrorComponentProps, Link } from '@tanstack/react-router';
import { PORTAL_COMPANY_ID } from '../api/addresses.ts';
import { Page } from '../parts/page.tsx';
import { Failed } from '../parts/states.tsx';

/** A page that could not be drawn: a file of the dashboard did not load, or a fault of ours. */
export function PageFailed({ error }: ErrorComponentProps) {
  return (
    <Page title="This page could not be shown">
      <Failed
        error={error}
        what="show this page"
        retry={() => {
          location.reload();
        }}
      />
    </Page>
  );
}

/** The first page, by the name that the navigation has for it: the portal has no overview. */
function ToFirstPage() {
  if (PORTAL_COMPANY_ID !== null) return <Link to="/webhooks">webhooks</Link>;
  return <Link to="/">overview</Link>;
}

export function PageMissing() {
  return (
    <Page title="There is no such page">
      <p>
        The address may be incomplete. Paste an id into the search box above, or go to the{' '}
        <ToFirstPage />.
      </p>
    </Page>
  );
}

/** A page that exists, but not for whoever looks. */
export function PageDenied({ why }: { why: string }) {
  return (
    <Page title="This page is not open to you">
      <p>
        {why} Go to the <ToFirstPage />.
      </p>
    </Page>
  );
}
