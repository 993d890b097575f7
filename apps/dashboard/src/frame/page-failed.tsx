import type { ErrorComponentProps } from '@tanstack/react-router';
import { Link } from '@tanstack/react-router';
import { Failed } from '../parts/states.tsx';
import { Page } from '../parts/page.tsx';

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

export function PageMissing() {
  return (
    <Page title="There is no such page">
      <p>
        The address may be incomplete. Paste an id into the search box above, or go to the{' '}
        <Link to="/">overview</Link>.
      </p>
    </Page>
  );
}
