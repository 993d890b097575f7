import { type MouseEvent, useEffect, useState } from 'react';
import { copyText } from './copy-text.ts';

const SHOWN_MS = 1_500;

/** Copies text, and says for a moment that it did. */
export function useCopy() {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => {
      setCopied(false);
    }, SHOWN_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [isCopied]);
  const copy =
    (text: string) =>
    (event: MouseEvent): void => {
      event.stopPropagation();
      event.preventDefault();
      void copyText(text).then(() => {
        setCopied(true);
      });
    };
  return { isCopied, copy };
}
