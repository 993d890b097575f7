import { Link } from '@tanstack/react-router';
import { accessTo } from '../session/page-rights.ts';
import { rightsOf } from '../session/rights.ts';
import { useSession } from '../session/session-context.ts';
import styles from './frame.module.css';

const PLACES = [
  { to: '/', name: 'Overview' },
  { to: '/messages', name: 'Messages' },
  { to: '/webhooks', name: 'Webhooks' },
  { to: '/deliveries', name: 'Undelivered' },
  { to: '/failures', name: 'Failures' },
  { to: '/circuits', name: 'Circuits' },
  { to: '/resends', name: 'Resends' },
  { to: '/projects', name: 'Projects and apps' },
  { to: '/api-keys', name: 'API keys' },
  { to: '/audit', name: 'Audit log' },
  { to: '/start', name: 'First steps' },
] as const;

/** Only the pages that this session may see. */
export function Navigation() {
  const session = useSession();
  const rights = rightsOf(session);
  const shown = PLACES.filter(({ to }) => accessTo(to, session.kind, rights).kind === 'allowed');
  return (
    <nav aria-label="Pages">
      <ul className={styles.places}>
        {shown.map(({ to, name }) => (
          <li key={to}>
            <Link
              to={to}
              className={styles.place}
              activeOptions={{ exact: to === '/', includeSearch: false }}
              activeProps={{ 'aria-current': 'page' }}
            >
              {name}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}
