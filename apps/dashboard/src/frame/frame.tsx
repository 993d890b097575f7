import { ActionIcon, Anchor } from '@mantine/core';
import { Outlet, rootRouteId, useLocation, useMatches } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { version } from '../../package.json';
import { type LiveState, useLiveState } from '../api/live.ts';
import { MenuIcon } from '../parts/icons.tsx';
import { accessTo } from '../session/page-rights.ts';
import { rightsOf } from '../session/rights.ts';
import { useSession } from '../session/session-context.ts';
import { CallsPanel } from './calls-panel.tsx';
import { Navigation } from './navigation.tsx';
import { PageDenied, PageMissing } from './page-failed.tsx';
import { SearchBox } from './search-box.tsx';
import { Settings } from './settings.tsx';
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
      <div className={styles.sidebar} data-open={isMenuOpen}>
        <Navigation />
        <footer className={styles.foot}>
          <LiveNote />
          <Version />
        </footer>
      </div>
      <main className={styles.main} ref={main} tabIndex={-1}>
        <AllowedPage />
        <CallsPanel />
      </main>
    </div>
  );
}

/** The page that the address names, unless the rights of the session exclude it. */
function AllowedPage() {
  const session = useSession();
  const page = useMatches({ select: (matches) => matches.at(-1)?.routeId });
  if (page === undefined || page === rootRouteId) return <Outlet />;
  const access = accessTo(page, session.kind, rightsOf(session));
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
