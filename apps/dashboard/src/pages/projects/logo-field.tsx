import { FileInput, Group, TextInput } from '@mantine/core';
import { useState } from 'react';
import { valueTo } from '../../parts/form-fields.ts';
import type { LinkFieldsProps } from './portal-link-rules.ts';
import styles from './projects.module.css';

const TYPES = 'image/png,image/jpeg,image/webp,image/svg+xml';

/** A logo by its URL, or a file that goes with the theme: then no page has to be asked for it. */
export function LogoField({ draft: { logoUrl }, problems, change }: LinkFieldsProps) {
  const isFile = logoUrl.startsWith('data:');
  const [file, setFile] = useState<File | null>(null);
  const choose = (chosen: File | null): void => {
    setFile(chosen);
    if (chosen === null) {
      change({ logoUrl: '' });
      return;
    }
    const reader = new FileReader();
    reader.onload = () => {
      if (typeof reader.result === 'string') change({ logoUrl: reader.result });
    };
    reader.readAsDataURL(chosen);
  };
  return (
    <Group align="start" mt="md">
      <TextInput
        className={styles.logoUrl}
        label="Logo"
        description="An https URL at one of the origins of “Portal in a frame”, or a file"
        placeholder="https://app.example.com/logo.svg"
        value={isFile ? '' : logoUrl}
        error={problems.logoUrl}
        onChange={valueTo((url) => {
          change({ logoUrl: url.trim() });
        })}
      />
      <FileInput
        className={styles.file}
        label="Logo file"
        description="At most 48 kB; it goes with the link"
        placeholder="Choose an image"
        accept={TYPES}
        clearable
        clearButtonProps={{ 'aria-label': 'Remove the logo file' }}
        value={isFile ? file : null}
        onChange={choose}
      />
      {isFile && problems.logoUrl === undefined && (
        <img src={logoUrl} alt="The logo" className={styles.logo} />
      )}
    </Group>
  );
}
