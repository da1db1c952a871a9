"""Which packages provide the virtual packages that centres install themselves.

They are those of Spack's recipes of 2026. Others are known where an environment or a file says so.
"""

from __future__ import annotations

from collections.abc import Mapping

_PROVIDERS = {
    "blas": """
acfl amdblis armpl-gcc atlas blis cray-libsci essl flexiblas fujitsu-ssl2 intel-mkl intel-oneapi-mkl
netlib-lapack nvhpc nvpl-blas openblas veclibfort
""",
    "lapack": """
acfl amdlibflame armpl-gcc atlas cray-libsci essl flexiblas fujitsu-ssl2 intel-mkl intel-oneapi-mkl
libflame netlib-lapack nvhpc nvpl-lapack openblas veclibfort
""",
    "mpi": """
cray-mpich cray-mvapich2 fujitsu-mpi hpcx-mpi intel-mpi intel-oneapi-mpi mpich mpilander
mpitrampoline mpt msmpi mvapich mvapich-plus mvapich2 mvapich2-gdr mvapich2x nmad openmpi
parastationmpi spectrum-mpi
""",
    "scalapack": """
amdscalapack cray-libsci fujitsu-ssl2 intel-mkl intel-oneapi-mkl netlib-scalapack nvpl-scalapack
""",
}
PROVIDERS: Mapping[str, frozenset[str]] = {
    virtual: frozenset(packages.split()) for virtual, packages in _PROVIDERS.items()
}
