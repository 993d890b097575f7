import { Button, type ButtonProps, Title } from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import { type AnchorHTMLAttributes, type ReactNode, type Ref, useEffect } from 'react';
import styles from './parts.module.css';

interface PageProps {
  title: string;
  /** Shown beside the title. */
  actions?: ReactNode;
  /** Shown below the title, such as an id. */
  under?: ReactNode;
  children: ReactNode;
}

/** A page with its heading, which also names the tab of the browser. */
export function Page({ title, actions, under, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Posthorn`;
  }, [title]);
  return (
    <>
      <div className={styles.pageHead}>
        <div className={styles.pageTitle}>
          <Title order={1} size="h2" lineClamp={3} title={title}>
            {title}
          </Title>
          {under}
        </div>
        {actions !== undefined && <div className={styles.pageActions}>{actions}</div>}
      </div>
      <div className={styles.stack}>{children}</div>
    </>
  );
}

/** A part of a page with a heading of its own. */
export function Section({ title, actions, children }: Omit<PageProps, 'under'>) {
  return (
    <section className={styles.section}>
      <div className={styles.sectionHead}>
        <Title order={2} size="h4">
          {title}
        </Title>
        {actions}
      </div>
      {children}
    </section>
  );
}

interface AnchorButtonProps
  extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof ButtonProps>, ButtonProps {
  ref?: Ref<HTMLAnchorElement>;
}

const AnchorButton = (props: AnchorButtonProps) => <Button component="a" {...props} />;

/** A link that looks like a button: it can be opened in another tab. */
export const LinkButton = createLink(AnchorButton);
