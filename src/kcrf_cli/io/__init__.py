"""What commands run with: files, progress, logs."""
