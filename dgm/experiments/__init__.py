"""Many runs: a sweep's file, the runs that it stands for, and how they are performed side by side."""
