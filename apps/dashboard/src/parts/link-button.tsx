import { Button, type ButtonProps } from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import type { AnchorHTMLAttributes, Ref } from 'react';

interface AnchorButtonProps
  extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof ButtonProps>, ButtonProps {
  ref?: Ref<HTMLAnchorElement>;
}

const AnchorButton = (props: AnchorButtonProps) => <Button component="a" {...props} />;

/** A link that looks like a button: it can be opened in another tab. */
export const LinkButton = createLink(AnchorButton);
