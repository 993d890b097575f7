import {
  ActionIcon,
  Anchor,
  Button,
  Text,
  Tooltip,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import {
  type ErrorComponentProps,
  Link,
  Outlet,
  rootRouteId,
  useLocation,
  useMatches,
} from '@tanstack/react-router';
import { useEffect, useId, useRef, useState } from 'react';
import { version } from '../../package.json';
import { PORTAL_COMPANY_ID } from '../api/addresses.ts';
import { toFailure } from '../api/failure.ts';
import { type LiveState, useLiveState } from '../api/live.ts';
import { leave, type SignedOut } from '../api/issuer.ts';
import { changeSession, showSignedOut } from '../api/query-client.ts';
import { curlOf, useRecordedCalls } from '../api/recorded-calls.ts';
import { signOut } from '../api/session.ts';
import { MenuIcon, MoonIcon, SunIcon } from '../parts/icons.tsx';
import { Page } from '../parts/page.tsx';
import { Failed } from '../parts/states.tsx';
import { CodeBlock } from '../parts/values.tsx';
import { accessTo } from '../session/rights.ts';
import { useHasIssuer, useSession } from '../session/session-context.ts';
import { RenewalOffer } from './renewal-offer.tsx';
import { SearchBox } from './search-box.tsx';
import { WhoAndWhere } from './who-and-where.tsx';
import styles from './frame.module.css';

/** What is around every page: navigation, search, the API calls that the page is made of. */
export function Frame() {
  const { pathname } = useLocation();
  const [isMenuOpen, setMenuOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    setMenuOpen(false);
    main.current?.scrollTo(0, 0);
  }, [pathname]);
  const toMain = (): void => {
    main.current?.focus();
  };
  return (
    <div className={styles.frame}>
      <Anchor component="button" className={styles.skip} onClick={toMain}>
        Skip to the page
      </Anchor>
      <header className={styles.header}>
        <ActionIcon
          className={styles.menuButton}
          variant="subtle"
          size="lg"
          aria-label={isMenuOpen ? 'Close the menu' : 'Open the menu'}
          aria-expanded={isMenuOpen}
          onClick={() => {
            setMenuOpen(!isMenuOpen);
          }}
        >
          <MenuIcon />
        </ActionIcon>
        <Brand />
        <SearchBox />
        <Settings />
      </header>
      <Sidebar isOpen={isMenuOpen} />
      <main className={styles.main} ref={main} tabIndex={-1}>
        <RenewalOffer />
        <AllowedPage />
        <CallsPanel />
      </main>
    </div>
  );
}

/** `isOpen`: on narrow screens, which show it only then. */
function Sidebar({ isOpen }: { isOpen: boolean }) {
  return (
    <div className={styles.sidebar} data-open={isOpen}>
      <div>
        <WhoAndWhere />
        <Navigation />
      </div>
      <footer className={styles.foot}>
        <LiveNote />
        <Version />
      </footer>
    </div>
  );
}

/** The page that the address names, unless the rights of the session exclude it. */
function AllowedPage() {
  const session = useSession();
  const hasIssuer = useHasIssuer();
  const page = useMatches({ select: (matches) => matches.at(-1)?.routeId });
  if (page === undefined || page === rootRouteId) return <Outlet />;
  const access = accessTo(page, session, hasIssuer);
  if (access.kind === 'missing') return <PageMissing />;
  if (access.kind === 'denied') return <PageDenied why={access.why} />;
  return <Outlet />;
}

function Brand() {
  const { company, portal } = useSession();
  const logo = portal?.theme.logoUrl;
  return (
    <div className={styles.brand}>
      {logo !== undefined && <img src={logo} alt="" className={styles.logo} />}
      <strong>{portal === null ? 'Posthorn' : (portal.theme.name ?? portal.app.name)}</strong>
      <span className={styles.company}>{portal === null ? company.name : 'Webhooks'}</span>
    </div>
  );
}

const LIVE_WORDS: Record<LiveState, string> = {
  connecting: 'Connecting to live updates',
  live: 'Live: new attempts show up by themselves',
  polling: 'No live updates: the page asks every 5 s',
};

function LiveNote() {
  const state = useLiveState();
  return (
    <p className={styles.live} data-state={state} role="status">
      {LIVE_WORDS[state]}
    </p>
  );
}

/** The version of these files, which is that of the gateway that served them. The customers of a portal do not see it. */
function Version() {
  const { kind } = useSession();
  return kind === 'portal' ? null : <p>Posthorn {version}</p>;
}

/** What people come for: to see what happens, to set up what is sent where, and to run the account. */
const GROUPS = [
  {
    name: 'Watch',
    places: [
      { to: '/', name: 'Overview' },
      { to: '/messages', name: 'Messages' },
      { to: '/deliveries', name: 'Undelivered' },
      { to: '/failures', name: 'Failures' },
      { to: '/circuits', name: 'Circuits' },
      { to: '/resends', name: 'Resends' },
    ],
  },
  {
    name: 'Configure',
    places: [
      { to: '/webhooks', name: 'Webhooks' },
      { to: '/event-types', name: 'Event types' },
      { to: '/projects', name: 'Projects and apps' },
      { to: '/start', name: 'First steps' },
    ],
  },
  {
    name: 'Account',
    places: [
      { to: '/api-keys', name: 'API keys' },
      { to: '/people', name: 'People' },
      { to: '/audit', name: 'Audit log' },
    ],
  },
] as const;

/** Only the pages that this session may see. */
function Navigation() {
  const session = useSession();
  const hasIssuer = useHasIssuer();
  return (
    <nav aria-label="Pages">
      {GROUPS.map(({ name, places }) => (
        <Places
          key={name}
          name={name}
          places={places.filter(({ to }) => accessTo(to, session, hasIssuer).kind === 'allowed')}
        />
      ))}
    </nav>
  );
}

interface PlacesProps {
  name: string;
  places: readonly (typeof GROUPS)[number]['places'][number][];
}

function Places({ name, places }: PlacesProps) {
  const id = useId();
  if (places.length === 0) return null;
  return (
    <>
      <p className={styles.group} id={id}>
        {name}
      </p>
      <ul className={styles.places} aria-labelledby={id}>
        {places.map((place) => (
          <li key={place.to}>
            <Link
              to={place.to}
              className={styles.place}
              activeOptions={{ exact: place.to === '/', includeSearch: false }}
              activeProps={{ 'aria-current': 'page' }}
            >
              {place.name}
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}

/** The colour scheme, and the way out. */
function Settings() {
  const { setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  const scheme = useComputedColorScheme('light');
  const other = scheme === 'dark' ? 'light' : 'dark';
  return (
    <div className={styles.settings}>
      <Tooltip label={`Show in ${other} colours`}>
        <ActionIcon
          variant="default"
          size="lg"
          aria-label={`Show in ${other} colours`}
          onClick={() => {
            setColorScheme(other);
          }}
        >
          {scheme === 'dark' ? <SunIcon /> : <MoonIcon />}
        </ActionIcon>
      </Tooltip>
      <SignOut />
    </div>
  );
}

function SignOut() {
  const { person } = useSession();
  const mutation = useMutation({
    mutationFn: async (): Promise<SignedOut | null> => {
      if (person !== null) return leave(false);
      await signOut();
      return null;
    },
    onSuccess: (signedOut) => {
      if (signedOut === null) changeSession(null);
      else showSignedOut(signedOut);
    },
  });
  return (
    <>
      {mutation.error !== null && (
        <Text size="sm" c="red" role="alert">
          Could not sign out. {toFailure(mutation.error).message}
        </Text>
      )}
      <Button
        variant="default"
        loading={mutation.isPending}
        onClick={() => {
          mutation.mutate();
        }}
      >
        Sign out
      </Button>
    </>
  );
}

/** The calls of the API that the page is made of, as commands. Nothing on a page comes from elsewhere. */
function CallsPanel() {
  const calls = useRecordedCalls();
  const { kind } = useSession();
  const [isOpen, setOpen] = useState(false);
  if (kind === 'portal' || calls.length === 0) return null;
  return (
    <footer className={styles.calls}>
      <Button
        variant="subtle"
        size="compact-sm"
        aria-expanded={isOpen}
        onClick={() => {
          setOpen(!isOpen);
        }}
      >
        {isOpen ? 'Hide' : 'Show'} the API calls of this page ({calls.length})
      </Button>
      {isOpen && (
        <>
          <Text size="sm">
            Put an API key into <code>POSTHORN_API_KEY</code>; the page itself uses your session
            instead.
          </Text>
          {calls.map((call) => (
            <CodeBlock
              key={call.method + call.path}
              name={`${call.method} ${call.path} with curl`}
              text={curlOf(call)}
            />
          ))}
        </>
      )}
    </footer>
  );
}

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
function PageDenied({ why }: { why: string }) {
  return (
    <Page title="This page is not open to you">
      <p>
        {why} Go to the <ToFirstPage />.
      </p>
    </Page>
  );
}
