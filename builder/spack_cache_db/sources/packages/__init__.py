"""Package data: what Spack publishes about its packages, without any binary."""
